/** Programs under a limit of addresses, on the built packages: they compute with the threads there is room for. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const entry = new URL('../../dist/index.js', import.meta.url);
const core = new URL('../../../core/dist/index.js', import.meta.url);
const there = process.platform === 'linux' && existsSync(fileURLToPath(entry)) && existsSync(fileURLToPath(core));

/** What the program prints where the shell limits addresses to so many GiB. */
function run(gib: number, threads: number): { out: string; err: string } {
  const program = `
import { createCpuEngine } from ${JSON.stringify(entry.href)};
import { ones, setEngine } from ${JSON.stringify(core.href)};
const engine = createCpuEngine({ threads: ${threads} });
await setEngine(engine);
const x = ones([256, 256]);
let total = 0;
for (let i = 0; i < 4; i++) {
  total += (await x.matmul(x).sum().data())[0];
  await new Promise((resolve) => setTimeout(resolve, 100));
}
console.log(total, engine.device.match(/\\d+ threads?$/)[0]);`;
  const command = `ulimit -v ${Math.floor(gib * 2 ** 20)}; exec "$0" --input-type=module --eval "$1"`;
  const { status, signal, stdout, stderr } = spawnSync('sh', ['-c', command, process.execPath, program], {
    encoding: 'utf8',
  });
  if (status !== 0) expect.fail(`with ${gib} GiB and ${threads} threads it ends with ${signal ?? status}:\n${stderr}`);
  return { out: stdout.trim(), err: stderr };
}

const total = 4 * 256 ** 3;
/** GiB for one thread: 10.9 are too few on Node 20, 11.2 are enough for two on Node 24 and 26. */
const oneThread = 11.05;

describe.skipIf(!there)('under ulimit -v', () => {
  it('one thread does all where there is room for no other, and a warning says so', () => {
    const { out, err } = run(oneThread, 4);
    expect(out).toBe(`${total} 1 thread`);
    expect(err).toMatch(
      /PolygradWarning: \[cpu\] the limit of addresses .* no room for so many threads: 1 instead of 4/,
    );
    expect(run(oneThread, 1)).toEqual({ out: `${total} 1 thread`, err: '' });
  });

  it.each([12, 16, 22])('with %d GiB the threads there is room for compute', (gib) => {
    expect(run(gib, 8).out).toMatch(new RegExp(`^${total} [1-8] threads?$`));
  });

  it('all threads start where there is room for them', () => {
    expect(run(64, 4)).toEqual({ out: `${total} 4 threads`, err: '' });
  });
});
