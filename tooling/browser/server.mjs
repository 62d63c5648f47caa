/** A web server for files in memory, on this machine alone, at a port that the system chooses. */
import { createServer } from 'node:http';

/** Headers under which a page may share memory between threads. */
export const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/**
 * Serves an empty page at `/` and the files, all with the given headers.
 *
 * @returns the address, and a function that ends the server and its connections
 */
export async function serve(files, headers = {}) {
  const page = '<!doctype html><meta charset="utf-8"><title>Polygrad</title><link rel="icon" href="data:,">';
  const server = createServer((request, response) => {
    const text = request.url === '/' ? page : files.get(request.url ?? '');
    const type = request.url === '/' ? 'text/html' : 'text/javascript';
    response.writeHead(text === undefined ? 404 : 200, { 'Content-Type': `${type}; charset=utf-8`, ...headers });
    response.end(text ?? 'not here');
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
