/**
 * TensorFlow.js with its WebAssembly backend as a peer: one thread, since its threaded build refuses Node.
 * Loaded by dist/harness/worker.js; the packages come from the folder that src/peers/install.ts filled.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { prepareNetwork, subject } from './tfjs_networks.mjs';
import { prepare } from './tfjs_work.mjs';

class Unsupported extends Error {
  name = 'Unsupported';
}

export async function createRunner({ threads, folder, tools }) {
  if (threads !== 1) throw new Unsupported('its threaded build does not run on Node');
  const require = createRequire(join(folder, 'package.json'));
  console.warn = () => undefined; // a hint about tfjs-node
  const tf = require('@tensorflow/tfjs-core');
  require('@tensorflow/tfjs-layers'); // brings the gradients: core alone has none on Node
  const wasm = require('@tensorflow/tfjs-backend-wasm');
  const main = require.resolve('@tensorflow/tfjs-backend-wasm');
  wasm.setWasmPaths(`${dirname(main)}/`);
  await tf.setBackend('wasm');
  await tf.ready();
  const { version } = JSON.parse(readFileSync(join(dirname(main), '../package.json'), 'utf8'));
  return {
    version,
    prepare: (work) => (work.kind === 'network' ? prepareNetwork : prepare)(tf, tools, work),
    subject: (work) => subject(tf, tools, work),
  };
}
