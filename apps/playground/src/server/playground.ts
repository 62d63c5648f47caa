/** Builds the page with Vite and serves it on this machine. Vite is loaded when it is needed. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InlineConfig, Plugin } from 'vite';
import { packDigits } from './data.ts';
import { HEADERS, ISOLATION, POLICY } from './headers.ts';
import { UsageError } from './options.ts';

/** Folder of this app, seen from src/server and from dist/server alike. */
const app = fileURLToPath(new URL('../..', import.meta.url));
/** Packed images, and the page as it is served. */
const cache: string = join(app, 'node_modules/.cache/playground');

/** Puts the policy into the page itself, for servers that send no headers. */
const policy: Plugin = {
  name: 'playground-policy',
  apply: 'build',
  transformIndexHtml: () => [
    { tag: 'meta', attrs: { 'http-equiv': 'Content-Security-Policy', content: POLICY }, injectTo: 'head-prepend' },
  ],
};

function config(out: string): InlineConfig {
  return {
    root: app,
    base: './',
    configFile: false,
    logLevel: 'warn',
    publicDir: join(cache, 'public'),
    cacheDir: join(cache, 'vite'),
    resolve: { conditions: ['@polygrad/source', 'module', 'browser', 'development|production'] },
    plugins: [policy],
    // One file: what is loaded later elsewhere would be missed by a visitor whose connection has gone.
    worker: { format: 'es', rolldownOptions: { checks: { pluginTimings: false }, output: { codeSplitting: false } } },
    build: {
      outDir: out,
      emptyOutDir: true,
      target: 'es2022',
      // Nothing inline: the policy allows files of this origin only.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      rolldownOptions: { checks: { pluginTimings: false } },
    },
  };
}

/** A server that runs. */
export interface Serving {
  readonly url: string;
  close(): Promise<void>;
}

/** A file that says that a folder was written here and may be written again. */
const MARK = '.polygrad-playground';

/** Throws where writing would remove what somebody else put there. */
async function checkFolder(out: string): Promise<void> {
  const there: string[] = await readdir(out).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new UsageError(`${out} is not a folder that can be written: ${error.message}`);
  });
  if (there.length > 0 && !there.includes(MARK)) {
    throw new UsageError(`${out} is not empty and was not written by this command: choose another folder`);
  }
}

/**
 * Writes the page and its data into a folder that any server can serve.
 *
 * @param out the folder; what an earlier call wrote there is removed
 * @throws UsageError for a folder with anything else in it
 */
export async function buildPlayground(out: string): Promise<void> {
  await checkFolder(out);
  await packDigits(join(cache, 'public'));
  const { build } = await import('vite');
  await build(config(out));
  await writeFile(join(out, MARK), 'Made by npm run playground -- --build\n');
}

/**
 * Builds the page and serves it at this machine's own address.
 *
 * @param port 0 for any
 * @param out where the page is built
 */
export async function servePlayground(port: number, out: string = join(cache, 'page')): Promise<Serving> {
  await buildPlayground(out);
  const { preview } = await import('vite');
  const server = await preview({
    ...config(out),
    preview: { host: '127.0.0.1', port, cors: false, headers: { ...HEADERS } },
  });
  return { url: server.resolvedUrls?.local[0] ?? '', close: () => server.close() };
}

/** Serves the sources; for work on the page. Vite's own client needs more than the page's policy allows. */
export async function developPlayground(port: number): Promise<Serving> {
  await packDigits(join(cache, 'public'));
  const { createServer } = await import('vite');
  const server = await createServer({
    ...config(join(cache, 'page')),
    server: { host: '127.0.0.1', port, cors: false, headers: { ...ISOLATION } },
  });
  await server.listen();
  return { url: server.resolvedUrls?.local[0] ?? '', close: () => server.close() };
}
