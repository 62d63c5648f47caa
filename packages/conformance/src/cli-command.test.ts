/** The command's exit codes, and that its last line always has the totals. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
// Named here, so that later files of the process find the backends that the command loads while tests run.
import '@polygrad/backend-cpu';
import '@polygrad/backend-opencl';
import { afterEach, expect, it, vi } from 'vitest';
import { createReferenceEngine } from '@polygrad/testing';
import { conformance } from './cli-command.ts';
import { runConformance } from './run.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

async function run(...args: string[]): Promise<{ code: number; last: string | undefined; errors: string }> {
  const out: string[] = [];
  const errors: string[] = [];
  const code = await conformance(args, { out: (line) => out.push(line), error: (line) => errors.push(line) });
  return { code, last: out.at(-1), errors: errors.join('\n') };
}

it('refuses bad arguments, also of engines, before anything is run', async () => {
  const wrong: [string[], RegExp][] = [
    [[], /--engine is missing; give one of/],
    [['--engine', 'abacus'], /--engine is abacus/],
    [['--engine', 'cpu', '--threads', '0'], /--threads is 0/],
    [['--engine', 'cpu', '--threads', '100'], /\[cpu\] bad threads: 100; must be a whole number from 1 to 64/],
    [['--engine', 'reference', '--slice', '0/4'], /--slice is 0\/4; give two whole numbers/],
    [['--engine', 'reference', '--slice', '5/4'], /--slice is 5\/4/],
    [['--engine', 'reference', '--slice', '3'], /--slice is 3/],
    [['--engine', 'reference', '--slice', '1/2/3'], /--slice is 1\/2\/3/],
    [['--engine', 'reference', '--sizes', 'sometimes'], /--sizes is sometimes; give automatic, always or never/],
    [['--engine', 'reference', '--threads', '2'], /2 threads for reference: only the engines cpu and native have them/],
    [['--engine', 'reference', '--filter', 'zzz'], /no case has 'zzz' in its name/],
    // Below a file, where there cannot be a folder.
    [
      ['--engine', 'reference', '--json', join(fileURLToPath(import.meta.url), 'x.json')],
      /--json .*x.json cannot be written: .* is no folder/,
    ],
    [['--engine', 'reference', '--json', tmpdir()], /cannot be written: it is a folder/],
    [['--engin', 'cpu'], /engin/],
  ];
  for (const [args, text] of wrong) {
    const { code, last, errors } = await run(...args);
    expect([code, last], args.join(' ')).toEqual([2, '0 passed, 0 failed, 0 skipped']);
    expect(errors).toMatch(text);
  }
});

it('an engine that is not there is skipped, or has failed where it is required', async () => {
  vi.stubEnv('POLYGRAD_OPENCL_DEVICE', 'a card that nobody has');
  vi.stubEnv('POLYGRAD_REQUIRE', '');
  expect(await run('--engine', 'opencl')).toEqual({ code: 0, last: '0 passed, 0 failed, 1 skipped', errors: '' });
  vi.stubEnv('POLYGRAD_REQUIRE', 'opencl');
  const required = await run('--engine', 'opencl-simt', '--json', join(tmpdir(), 'never-written.json'));
  expect(required.last).toBe('0 passed, 1 failed, 0 skipped');
  expect([required.code, required.errors]).toEqual([2, 'conformance: POLYGRAD_REQUIRE asks for opencl-simt']);
});

it('parts of the suite are all of it together, and none of it twice', async () => {
  const engine = createReferenceEngine();
  const names = async (slice?: readonly [number, number]): Promise<string[]> => {
    const { results, leftOut, passed } = await runConformance({
      engine,
      filter: 'isNaN',
      goldens: null,
      ...(slice === undefined ? {} : { slice }),
    });
    expect(passed).toBe(results.length);
    expect(leftOut).toBe(slice === undefined ? 0 : all.length - results.length);
    return results.map(({ name }) => name);
  };
  const all: string[] = await names();
  const parts = [await names([1, 2]), await names([2, 2])];
  for (const part of parts) expect(part.length).toBeGreaterThan(0);
  expect(parts.flat().sort()).toEqual([...all].sort());
  await expect(runConformance({ engine, slice: [4, 3] })).rejects.toThrow('[conformance] slice is 4/3; give two');
});

it('refuses options that it would leave out or fail by', async () => {
  const refused = (options: object): Promise<unknown> =>
    runConformance(options as never).then(
      () => null,
      (error: unknown) => String(error),
    );
  const engine = createReferenceEngine();
  expect(await refused({})).toContain('[conformance] engine is undefined; give the engine itself');
  expect(await refused({ engine: 'cpu' })).toContain("[conformance] engine is 'cpu'; give the engine itself");
  expect(await refused({ engine, skip: 'scatter' })).toContain("[conformance] skip holds 'scatter'; give a list");
  expect(await refused({ engine, skip: ['scatter'] })).toContain("[conformance] skip holds 'scatter'; give a list");
  expect(await refused({ engine, filters: 'add' })).toContain(
    "[conformance] no option 'filters', did you mean 'filter'?",
  );
});
