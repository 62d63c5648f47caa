/**
 * Processes that write different programs under one name of a cache, while others read and one damages the file: whoever reads gets a
 * whole program or none.
 *
 *   node writers.mjs [writes of each]       default 300
 */
import { fork } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheKey, ProgramCache } from '../dist/program-cache.js';

const key = cacheKey(['one']);
const lengthOf = (id) => 1000 + 5000 * id;

function work(folder, id, count) {
  const cache = new ProgramCache(folder);
  for (let i = 0; i < count; i++) {
    cache.write([key], new Uint8Array(lengthOf(id)).fill(id));
    const found = cache.read(key);
    if (found === null) continue;
    const [first] = found.binary;
    if (found.binary.length !== lengthOf(first) || found.binary.some((byte) => byte !== first))
      throw new Error(`writer ${id} read half of a program: ${found.binary.length} bytes that begin with ${first}`);
  }
}

function damage(folder, count) {
  for (let i = 0; i < count; i++) {
    try {
      truncateSync(join(folder, `${key}.clbin`), i % 3000);
    } catch {
      // Not there at the moment.
    }
  }
}

const [mode, folder, count] = process.argv.slice(2);
if (folder !== undefined) {
  if (mode === 'damage') damage(folder, Number(count));
  else work(folder, Number(mode), Number(count));
} else {
  const writes = mode ?? '300';
  const parent = mkdtempSync(join(tmpdir(), 'polygrad-writers-'));
  const cache = new ProgramCache(join(parent, 'cache'));
  const children = ['1', '2', '3', '4', 'damage'].map((id) => fork(process.argv[1], [id, cache.folder, writes]));
  const codes = await Promise.all(children.map((child) => new Promise((resolve) => child.on('exit', resolve))));
  cache.write([key], Uint8Array.of(9));
  const whole = cache.read(key)?.binary.length === 1;
  const left = readdirSync(cache.folder);
  rmSync(parent, { recursive: true });
  if (codes.some((code) => code !== 0)) throw new Error(`exit codes ${codes}`);
  if (!whole || left.length !== 1) throw new Error(`left in the folder: ${left}`);
  console.log(`4 processes wrote ${writes} programs each under one name, never half of one was read`);
}
