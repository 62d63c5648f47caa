/**
 * Processes that build the same programs at one moment, for a driver whose cache on disk they share and find empty (PoCL): from source,
 * and then, in another empty cache of the driver, from binaries.
 *
 *   node builders.mjs [programs] [processes]       default 60, 4
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLibrary } from '../dist/addon.js';
import { poclLockFolder } from '../dist/build-locks.js';
import { ProgramCache } from '../dist/program-cache.js';
import { ProgramStore } from '../dist/programs.js';

const textOf = (i) => ({
  entry: 'turn',
  source: `__kernel void turn(__global uint* x, uint by, uint loops) {
  uint i = get_global_id(0), v = x[i];
  for (uint k = 0; k < loops; k++) v = v * 1664525u + by + ${i}u;
  x[i] = v;
}`,
});
const layout = Float64Array.of(4, 1, 1, 1, 1, 1, 0, 4, 4);

/** One process: builds when it is told to, and says how many programs it had to compile. */
function work(folder, count) {
  const addon = openLibrary();
  if (typeof addon === 'string') throw new Error(addon);
  const driver = new addon.Driver(0, true);
  const store = new ProgramStore(driver, new ProgramCache(folder), '-w', ['builders'], true, poclLockFolder());
  process.on('message', () => {
    // Each a program of its own.
    const held = Array.from({ length: count }, (_, i) => store.take([textOf(i)])[0]);
    for (const one of held) driver.kernel(store.handleOf(one), one.entry, layout);
    process.send(store.compiled);
    driver.dispose();
    process.disconnect();
  });
  process.send('here');
}

/** Starts processes, has them build at one moment; gives what each compiled, or how it ended. */
async function together(processes, folder, count, env) {
  const children = Array.from({ length: processes }, () =>
    fork(process.argv[1], ['build', folder, count], { env: { ...process.env, ...env } }),
  );
  const once = (child, event) => new Promise((resolve) => child.once(event, (...args) => resolve(args)));
  await Promise.all(children.map((child) => Promise.race([once(child, 'message'), once(child, 'exit')])));
  return Promise.all(
    children.map(async (child) => {
      const ended = once(child, 'exit');
      let compiled;
      child.on('message', (number) => {
        compiled = number;
      });
      if (child.connected) child.send('go');
      const [code, signal] = await ended;
      return code === 0 ? compiled : `ended with ${signal ?? code}`;
    }),
  );
}

const [mode, folder, count] = process.argv.slice(2);
if (mode === 'build') {
  work(folder, Number(count));
} else {
  const programs = mode ?? '60';
  const processes = Number(folder ?? 4);
  const parent = mkdtempSync(join(tmpdir(), 'polygrad-builders-'));
  const cacheOf = (name) => ({ POCL_CACHE_DIR: join(parent, name) });
  const started = performance.now();
  const built = await together(processes, join(parent, 'programs'), programs, cacheOf('first'));
  const loaded = await together(processes, join(parent, 'programs'), programs, cacheOf('second'));
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  rmSync(parent, { recursive: true });
  if ([...built, ...loaded].some((ending) => typeof ending === 'string'))
    throw new Error(`${processes} processes compiled ${built.join(', ')}, then ${loaded.join(', ')}`);
  console.log(
    `${processes} processes compiled ${built.join(', ')}, then ${loaded.join(', ')} programs in ${seconds} s`,
  );
}
