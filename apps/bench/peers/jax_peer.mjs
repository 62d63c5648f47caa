/**
 * jax-js with its WebAssembly backend as a peer. It starts threads only where browsers' `Worker` is there. For more than one thread this module gives
 * it one made of Node's worker threads. Else it runs as it does on Node, on one. Loaded by dist/harness/worker.js; the package comes from the folder
 * that src/peers/install.ts filled.
 */
import { readFileSync } from 'node:fs';
import { resolveObjectURL } from 'node:buffer';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker as NodeWorker } from 'node:worker_threads';
import { prepare } from './jax_work.mjs';

/** As much of browsers' Worker as jax-js uses. */
class BlobWorker {
  #worker;
  onmessage = null;
  onerror = null;
  constructor(url) {
    this.#worker = resolveObjectURL(url)
      .text()
      .then((source) => {
        const head =
          "const { parentPort } = require('node:worker_threads'); globalThis.self = globalThis;" +
          'globalThis.postMessage = (m) => parentPort.postMessage(m);' +
          "parentPort.on('message', (data) => self.onmessage({ data }));";
        const worker = new NodeWorker(head + source, { eval: true });
        worker.on('message', (data) => this.onmessage?.({ data }));
        worker.on('error', (error) => this.onerror?.({ message: String(error) }));
        return worker;
      });
  }
  postMessage(message) {
    this.#worker.then((worker) => worker.postMessage(message));
  }
}

export async function createRunner({ threads, folder, tools }) {
  if (threads > 1) {
    globalThis.Worker = BlobWorker;
    Object.defineProperty(globalThis, 'navigator', { value: { hardwareConcurrency: threads }, configurable: true });
  }
  const main = createRequire(join(folder, 'package.json')).resolve('@jax-js/jax');
  const { version } = JSON.parse(readFileSync(join(dirname(main), '../package.json'), 'utf8'));
  const jax = await import(pathToFileURL(join(dirname(main), 'index.js')).href);
  await jax.init('wasm');
  jax.defaultDevice('wasm');
  return {
    version,
    ...(threads > 1 ? { note: 'threads through a Worker made of worker_threads' } : {}),
    prepare: (work) => prepare(jax, tools, work),
  };
}
