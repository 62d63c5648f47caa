/**
 * `node tooling/read-path.mjs`: the files of core that one `await t.data()` visits, with the functions that run there.
 *
 * A file is visited if one of its functions runs between the call and the values: V8 counts calls. Measured on the CPU engine with one
 * thread, on what `tsc -b` built. One tensor is in memory; two operations of the other wait, and their plan is known. Both were read
 * before, so that nothing is made that only a first call makes. Engines are packages of their own and are not counted.
 */
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setImmediate } from 'node:timers/promises';

const root = fileURLToPath(new URL('..', import.meta.url));
const built = ['core', 'compiler'].map((name) => pathToFileURL(join(root, `packages/${name}/dist/`)).href);

/** Functions that run while `body` does, by file of the `src` of core or of its compiler. */
async function visited(session, body) {
  // What earlier calls have left for a later turn is none of this.
  await setImmediate();
  await session.post('Profiler.takePreciseCoverage');
  await body();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const found = {};
  for (const { url, functions } of result) {
    const names = functions.filter(({ ranges }) => ranges[0].count > 0).map(({ functionName }) => functionName);
    const folder = built.find((start) => url.startsWith(start));
    if (folder !== undefined && names.length > 0)
      found[url.slice(folder.length).replace(/\.js$/, '.ts')] = names.map((name) => name || '(anonymous)');
  }
  return found;
}

/** What reading a tensor visits: `inMemory`, and `pending` with a known plan. */
async function readPath() {
  const { setEngine, tensor } = await import('@polygrad/core');
  await import('@polygrad/backend-cpu');
  await setEngine('cpu', { threads: 1 });
  const x = tensor([1, 2, 3]);
  const read = () => x.mul(2).add(1).data();
  for (let i = 0; i < 3; i++) await read();
  const y = x.mul(2).add(1);
  await x.data();
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const inMemory = await visited(session, () => x.data());
  const pending = await visited(session, () => y.data());
  session.disconnect();
  return { inMemory, pending };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const path = await readPath();
  if (process.argv.includes('--json')) console.log(JSON.stringify(path));
  else {
    for (const [name, files] of Object.entries(path)) {
      console.log(`${name}: ${Object.keys(files).length} files`);
      for (const [file, functions] of Object.entries(files)) console.log(`  ${file}: ${functions.join(' ')}`);
    }
  }
}
