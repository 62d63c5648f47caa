/**
 * The worked examples of CONTRIBUTING.md: the edits are made in a copy of the packages. It must pass the type check, and compute on the
 * reference engine and on the CPU engine. At most four files are edited by hand.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyEdits, copiedPackages, editsOf, sectionOf } from './worked-examples.mjs';
import { root } from './workspace.mjs';

const operation = editsOf(sectionOf('CONTRIBUTING.md', 'Adding an operation'));
const primitive = editsOf(sectionOf('CONTRIBUTING.md', 'Adding a primitive'));
const filesOf = (edits) => new Set(edits.map(({ file }) => file));

const engines = `
  import { setEngine } from '@polygrad/core';
  import { createReferenceEngine } from '@polygrad/testing';
  import { createCpuEngine } from '@polygrad/backend-cpu';
  export const engines = [createReferenceEngine(), createReferenceEngine({ simt: true }), await createCpuEngine({ threads: 1 })];
`;

/** Forward, gradient, batches and tangents of exp10, by each engine. */
const ofPrimitive = `
  import { grad, jvp, setEngine, sum, tensor, vmap } from '@polygrad/core';
  import { exp10Primitive } from './packages/core/src/primitives/elementary.ts';
  import { floatUnaryOp } from './packages/core/src/ops/elementwise/recording.ts';
  import { engines } from './engines.ts';
  const exp10 = (x) => floatUnaryOp('exp10', exp10Primitive, x);
  const results = [];
  for (const engine of engines) {
    await setEngine(engine);
    const x = tensor([-1, 0, 0.5, 2]);
    const [value, tangent] = jvp(exp10, [x], [tensor([1, 2, 3, 4])]);
    results.push({
      value: await exp10(x).array(),
      slope: await grad((t) => sum(exp10(t)))(x).array(),
      second: await grad((t) => sum(grad((u) => sum(exp10(u)))(t)))(x).array(),
      batch: await vmap((t) => exp10(t))(x).array(),
      tangent: await tangent.array(),
      again: await value.array(),
    });
  }
  console.log(JSON.stringify(results));
`;

const ofOperation = `
  import { runConformance } from '@polygrad/conformance';
  import { engines } from './engines.ts';
  const results = [];
  for (const engine of engines) {
    const { passed, failed } = await runConformance({ engine, skip: [], filter: 'logCosh' });
    results.push({ passed, failed });
  }
  console.log(JSON.stringify(results));
`;

describe('worked examples', () => {
  let copy;
  beforeAll(() => {
    copy = copiedPackages();
    applyEdits(copy.folder, [...operation, ...primitive]);
    writeFileSync(join(copy.folder, 'engines.ts'), engines);
  });
  afterAll(() => copy?.remove());

  /** What a program prints that is made with the copy. */
  async function printed(name, code) {
    writeFileSync(join(copy.folder, `${name}.ts`), code);
    const outfile = join(copy.folder, `${name}.mjs`);
    await build({
      entryPoints: [join(copy.folder, `${name}.ts`)],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      conditions: ['@polygrad/source'],
      logLevel: 'error',
    });
    return JSON.parse(execFileSync(process.execPath, [outfile], { encoding: 'utf8', maxBuffer: 2 ** 26 }));
  }

  it('edit few files', () => {
    expect(operation.length).toBeGreaterThan(1);
    expect(filesOf(operation).size).toBeLessThanOrEqual(4);
    expect(primitive.length).toBeGreaterThan(1);
    expect(filesOf(primitive).size).toBeLessThanOrEqual(4);
  });

  it('pass the type check', () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', copy.folder], { encoding: 'utf8' });
    expect(stdout).toBe('');
  });

  it('make a primitive with value, gradient, tangent and batch', async () => {
    const results = await printed('primitive', ofPrimitive);
    expect(results.length).toBe(3);
    const close = (actual, expected) => {
      for (const [i, value] of actual.entries()) expect(Math.abs(value / expected[i] - 1)).toBeLessThan(1e-5);
    };
    const powers = [0.1, 1, 10 ** 0.5, 100];
    const slopes = powers.map((y) => y * Math.LN10);
    for (const { value, slope, second, batch, tangent, again } of results) {
      for (const same of [value, batch, again]) close(same, powers);
      close(slope, slopes);
      close(
        second,
        slopes.map((y) => y * Math.LN10),
      );
      close(
        tangent,
        slopes.map((y, i) => y * (i + 1)),
      );
    }
  });

  it('make an operation that passes its conformance row', async () => {
    const results = await printed('operation', ofOperation);
    expect(results.length).toBe(3);
    for (const { passed, failed } of results) {
      expect(failed).toBe(0);
      expect(passed).toBeGreaterThan(5);
    }
  });
});
