/**
 * Registers, spills and warps of the tiles of contractions: those that are chosen by shape, on sm_80 and by tiles of matrices on every card, and all
 * that may be measured.
 */
import { readFileSync } from 'node:fs';
import { conv2d, type DType, flush, matmul, setEngine, type Tensor, tensor, tune } from '@polygrad/core';
import { matrixLowering } from '@polygrad/core/engine/threads';
import { createNullEngine } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { assemble, ptxas, ptxasVersion, targets, warpsOf } from './fixtures/ptxas.ts';
import { emitPtx, type PtxKernel, ptxCaps, type PtxLimits } from './index.ts';

const ampere = { computeCapability: 80, isa: '7.0' };

function filled(dtype: DType, shape: readonly number[]): Tensor {
  const length = shape.reduce((a, b) => a * b);
  const data = dtype === 'float16' || dtype === 'bfloat16' ? new Uint16Array(length) : new Float32Array(length);
  return tensor(data, { dtype, shape: [...shape] });
}

/** An engine that computes nothing, and the kernels it was given. */
async function listening(
  target = ampere,
  more: PtxLimits = {},
): Promise<{ kernels: PtxKernel[]; engine: ReturnType<typeof createNullEngine> }> {
  const caps = ptxCaps(target.computeCapability, { multiprocessors: 108, sharedBytes: 163 * 1024, ...more });
  const engine = createNullEngine({ ...caps, bindAlign: 16, lowering: matrixLowering });
  const kernels: PtxKernel[] = [];
  const compile = engine.compile.bind(engine);
  engine.compile = (programs) => {
    for (const p of programs) kernels.push(emitPtx(p, target));
    return compile(programs);
  };
  await setEngine(engine);
  return { kernels, engine };
}

/** Products and convolutions: the most registers of any kernel of theirs, and the fewest warps of the largest. */
const chosen: readonly (readonly [string, () => Tensor, number, number])[] = [
  [
    'float32, 1024 x 1024 x 1024',
    () => matmul(filled('float32', [1024, 1024]), filled('float32', [1024, 1024])),
    128,
    16,
  ],
  [
    'float16, 1024 x 1024 x 1024',
    () => matmul(filled('float16', [1024, 1024]), filled('float16', [1024, 1024])),
    128,
    16,
  ],
  [
    'bfloat16, 1024 x 1024 x 1024',
    () => matmul(filled('bfloat16', [1024, 1024]), filled('bfloat16', [1024, 1024])),
    128,
    16,
  ],
  [
    'float64, 1024 x 1024 x 1024',
    () => matmul(filled('float64', [1024, 1024]), filled('float64', [1024, 1024])),
    128,
    16,
  ],
  ['float32, 256 x 256 x 256', () => matmul(filled('float32', [256, 256]), filled('float32', [256, 256])), 96, 16],
  [
    'float32, 1 x 4096 by 4096 x 512',
    () => matmul(filled('float32', [1, 4096]), filled('float32', [4096, 512])),
    96,
    16,
  ],
  [
    'float32, 32 of 64 x 64 x 64',
    () => matmul(filled('float32', [32, 64, 64]), filled('float32', [32, 64, 64])),
    96,
    16,
  ],
  [
    'float32, 8 x 64 x 56 x 56 by 3 x 3',
    () => conv2d(filled('float32', [8, 64, 56, 56]), filled('float32', [64, 64, 3, 3])),
    168,
    12,
  ],
];

/** What the assembler said of each, as a row of the README. */
const said: string[] = [];

it.skipIf(ptxas() === null).each(chosen)(
  '%s spills nothing and leaves room',
  async (name, compute, registers, warps) => {
    const { kernels } = await listening();
    const y = compute();
    flush();
    y.dispose();
    const [largest] = assemble(kernels, ampere)
      .map((r, i) => ({
        ...r,
        bytes: Math.max(r.sharedBytes, kernels[i]!.sharedBytes),
        warps: warpsOf(r, kernels[i]!),
      }))
      .sort((a, b) => b.registers - a.registers);
    expect(largest).toMatchObject({ spilled: 0 });
    expect(largest?.registers).toBeLessThanOrEqual(registers);
    expect(largest?.warps).toBeGreaterThanOrEqual(warps);
    said.push([name, largest!.registers, `${Math.round(largest!.bytes / 1024)} KiB`, largest!.warps].join(' | '));
  },
);

it.skipIf(ptxasVersion() !== '13.0')('the README says what the assembler says', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const rows = readme
    .slice(readme.indexOf('| product or convolution'))
    .split('\n')
    .slice(2, 2 + chosen.length);
  const cells = rows.map((row) => row.split('|').slice(1, -1));
  expect(cells.map((row) => row.map((cell) => cell.trim()).join(' | '))).toEqual(said);
});

/** Products and convolutions by tiles of matrices: the most registers of any card. */
const byTiles: readonly (readonly [string, DType, () => Tensor, number])[] = [
  ['float16 1024', 'float16', () => matmul(filled('float16', [1024, 1024]), filled('float16', [1024, 1024])), 128],
  ['bfloat16 1024', 'bfloat16', () => matmul(filled('bfloat16', [1024, 1024]), filled('bfloat16', [1024, 1024])), 128],
  ['odd', 'float16', () => matmul(filled('float16', [1021, 511]), filled('float16', [511, 1023])), 128],
  ['batched 64', 'bfloat16', () => matmul(filled('bfloat16', [32, 64, 64]), filled('bfloat16', [32, 64, 64])), 96],
  ['conv 3 x 3', 'float16', () => conv2d(filled('float16', [8, 64, 56, 56]), filled('float16', [64, 64, 3, 3])), 128],
  ['TF32 1024', 'float32', () => matmul(filled('float32', [1024, 1024]), filled('float32', [1024, 1024])), 128],
];

it.skipIf(ptxas() === null).each(targets)(
  'tiles of matrices spill nothing on sm_$computeCapability',
  async (target) => {
    const some: [string, number, PtxKernel][] = [];
    for (const [name, dtype, compute, registers] of byTiles) {
      const { kernels } = await listening(target, { float32MatmulPrecision: 'high', sharedBytes: 64 * 1024 });
      const y = compute();
      flush();
      y.dispose();
      const own = kernels.filter(({ text }) => text.includes('mma.sync'));
      expect(own.length, name).toBe(target.computeCapability >= 80 || dtype === 'float16' ? 1 : 0);
      for (const k of own) some.push([name, registers, k]);
    }
    const found = assemble(
      some.map(([, , k]) => k),
      target,
    );
    for (const [i, [name, registers]] of some.entries()) {
      expect(found[i], name).toMatchObject({ spilled: 0 });
      expect(found[i]?.registers, name).toBeLessThanOrEqual(registers);
      expect(some[i]?.[2].sharedBytes, name).toBeLessThanOrEqual(64 * 1024);
    }
  },
);

it.skipIf(ptxas() === null)('no tile that may be measured spills', async () => {
  const { kernels, engine } = await listening();
  // What is measured makes no difference: all tiles are compiled.
  engine.submitTimed = async (commands) => commands.map(() => 1000);
  for (const [, compute] of chosen.slice(0, 2)) compute();
  flush();
  await tune(engine, { budget: 1e6 });
  expect(kernels.length).toBeGreaterThan(20);
  const texts = [...new Map(kernels.map((k) => [k.text, k])).values()];
  for (const [i, r] of assemble(texts, ampere).entries()) {
    expect(r, texts[i]!.text).toMatchObject({ spilled: 0 });
    expect(r.registers).toBeLessThanOrEqual(168);
  }
});
