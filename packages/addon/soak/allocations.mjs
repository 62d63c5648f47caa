/**
 * Many buffers in one engine: allocated, now and then written and copied, freed in another order; memory must stay flat.
 *
 *   node allocations.mjs BACKEND [cycles]       default 10,000,000
 */
import { backendOf } from './backend.mjs';

const { create, plain } = await backendOf(process.argv[2]);
const cycles = Number(process.argv[3] ?? 10_000_000);
const engine = create(plain);
const held = [];
const data = new Uint8Array(4096).fill(7);
let seed = 1;
const random = (n) => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * n);
};
let settled = 0;
for (let i = 0; i < cycles; i++) {
  const bytes = 1 + random(4096);
  const buffer = engine.alloc(bytes);
  if (i % 1000 === 0) engine.upload({ buffer, offset: 0, bytes }, data.subarray(0, bytes));
  held.push(buffer);
  if (held.length > 64) {
    const at = random(held.length);
    engine.free(held[at]);
    held[at] = held.at(-1);
    held.pop();
  }
  if (i % 100_000 === 0) await engine.idle();
  if (i === Math.floor(cycles / 4)) settled = process.memoryUsage().rss;
}
for (const buffer of held) engine.free(buffer);
await engine.idle();
const { bytes, buffers } = engine.memory();
const grown = (process.memoryUsage().rss - settled) / 2 ** 20;
console.log(`${cycles} cycles, ${grown.toFixed(1)} MiB more than after a quarter of them, ${buffers} buffers left`);
engine.dispose();
if (bytes !== 0 || buffers !== 0) throw new Error(`${buffers} buffers with ${bytes} bytes are left`);
if (grown > 32) throw new Error(`memory grew by ${grown.toFixed(1)} MiB`);
