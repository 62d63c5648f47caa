/** A web server for files in memory, on this machine alone, at a port that the system chooses. */
import { createServer } from 'node:http';

/** Headers under which a page may share memory between threads. */
export const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

const page = '<!doctype html><meta charset="utf-8"><title>Polygrad</title><link rel="icon" href="data:,">';

function typeOf(path) {
  if (path === '/') return 'text/html; charset=utf-8';
  return path.endsWith('.wasm') ? 'application/wasm' : 'text/javascript; charset=utf-8';
}

/**
 * Serves the files, and at `/` an empty page unless it is one of them, all with the given headers.
 *
 * @param files texts or bytes by path, or functions that read them
 * @returns the address, and a function that ends the server and its connections
 */
export async function serve(files, headers = {}) {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    const found = files.get(path) ?? (path === '/' ? page : undefined);
    response.writeHead(found === undefined ? 404 : 200, { 'Content-Type': typeOf(path), ...headers });
    response.end((typeof found === 'function' ? found() : found) ?? 'not here');
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
