/**
 * Contractions in stages by threads, against float64, on the interpreter, which finds races between threads and copies without a wait: every
 * size of block, both orders of both factors, sizes around every limit, windows, epilogues.
 */
import type { EngineCaps } from '@polygrad/core/engine';
import { describe, expect, it } from 'vitest';
import type { Program } from '../../ir/ir.ts';
import { findContraction } from '../contraction.ts';
import type { ContractionTemplate, TileChoices } from '../template.ts';
import { checkCase, makeCase, processorCaps, threadCaps } from '../fixtures/cases.ts';
import { base, convolution } from '../fixtures/convolutions.ts';
import { product, transposes } from '../fixtures/products.ts';
import { isWhole } from '../../fixtures/everyday.ts';
import { stagedContraction, stagedWays } from './staged.ts';

/** With copies beside other work, and through registers. */
const copying: EngineCaps = { ...threadCaps, sharedBytes: 96 * 1024, parallelism: 2, copies: true };
const storing: EngineCaps = { ...copying, copies: false };

const nothing: ContractionTemplate = () => null;
const byShape = stagedContraction(nothing);

/** A lowering that takes the block of this name. */
function always(name: string): ContractionTemplate {
  const choices: TileChoices = { find: () => name, note: () => undefined };
  return (kernel, e, caps) => byShape(kernel, e, caps, choices);
}

function waysFor(sizes: Parameters<typeof product>[0], caps: EngineCaps): string[] {
  const { kernel, e } = makeCase('float32', product(sizes));
  return stagedWays(findContraction(kernel, e)!, e, caps)
    .map(([name]) => name)
    .filter((name) => name.startsWith('stages:'));
}

const tileOf = (program: Program | undefined): unknown => program?.transforms?.at(-1)?.args[0];
const count = (program: Program | undefined, op: string): number => program!.body.filter((n) => n.op === op).length;

const ragged = [
  [69, 70, 33],
  [68, 72, 36],
] as const;

/** Batches, and the extents of products. */
const extents = [
  [1, 64, 64, 64],
  [3, 33, 21, 17],
  [2, 16, 36, 16],
  [1, 20, 24, 4112],
] as const;

describe.each([
  ['copies', copying, 0],
  ['stores', storing, 1],
] as const)('products in stages by %s', (_, caps, first) => {
  /** Every second one, beginning with another each turn, and with another for copies than for stores; all in the long tests. */
  const inTurns = <T>(list: readonly T[], turn: number): T[] =>
    list.filter((_, i) => isWhole || (i + turn + first) % 2 === 0);

  it('every block gives the sum, whichever way factors lie', () => {
    const names = waysFor({ m: 130, n: 130, k: 40 }, caps);
    expect(names.length).toBeGreaterThan(8);
    for (const [turn, name] of names.entries()) {
      const [transposeA, transposeB] = transposes[turn % transposes.length]!;
      for (const [m, n, k] of inTurns(ragged, turn)) {
        const { worst, lowered } = checkCase(
          'float32',
          product({ m, n, k, transposeA, transposeB }),
          caps,
          always(name),
        );
        expect(worst, `${name} ${m} x ${n} x ${k}`).toBeLessThanOrEqual(1);
        expect(lowered).not.toBeNull();
      }
    }
  });

  it('whole blocks, ragged ones, batches, and sums in parts', () => {
    for (const [turn, [transposeA, transposeB]] of transposes.entries())
      for (const [batch, m, n, k] of inTurns(extents, turn)) {
        const sizes = { m, n, k, batch, transposeA, transposeB };
        const { worst, lowered } = checkCase('float32', product(sizes), caps, byShape);
        expect(worst, JSON.stringify(sizes)).toBeLessThanOrEqual(1);
        expect(tileOf(lowered?.dispatches[0]?.program)).toMatch(k > 1000 ? /^stages:.*\/\d+$/ : /^stages:/);
      }
  });

  it('float64, and an epilogue with a bias in the same kernel', () => {
    expect(checkCase('float64', product({ m: 33, n: 18, k: 20 }), caps, byShape).worst).toBeLessThanOrEqual(1);
    const build = product({ m: 37, n: 28, k: 33 }, (making, sum, i, j) => {
      const { e, at } = making;
      const [bias, y] = [making.param(28), making.param(37 * 28, 'write')];
      return [[y, at([i, 28], [j, 1]), e.max(e.add(sum, e.load(bias, j)), e.constant(making.dtype, 0))]];
    });
    const { worst, lowered } = checkCase('float32', build, caps, byShape);
    expect(worst).toBeLessThanOrEqual(1);
    expect(lowered?.dispatches).toHaveLength(1);
  });

  it.each([
    ['padded', { ...base, inputs: 8, outputs: 20 }],
    ['with steps and holes', { ...base, inputs: 8, outputs: 20, stride: [2, 1], dilation: [1, 2] }],
    ['in groups', { ...base, groups: 2, inputs: 8, outputs: 17 }],
    ['with channels last', { ...base, inputs: 8, outputs: 20, last: true }],
  ] as const)('convolutions, %s', (_name, geometry) => {
    for (const kind of ['forward', 'kernelGradient'] as const) {
      const { worst, lowered } = checkCase('float32', convolution(geometry, kind), caps, byShape);
      expect(worst, kind).toBeLessThanOrEqual(1);
      expect(lowered, kind).not.toBeNull();
    }
  });
});

it('what lies in memory as it is needed is copied, zeros of padding too; what is computed goes through registers', () => {
  const lowered = (build: Parameters<typeof checkCase>[1]): Program | undefined =>
    checkCase('float32', build, copying, byShape).lowered?.dispatches[0]?.program;
  const plain = lowered(product({ m: 64, n: 64, k: 64 }));
  expect(plain?.body.filter((n) => n.op === 'COPY').map((n) => n.arg)).toContainEqual({ lanes: 4 });
  const padded = lowered(convolution({ ...base, inputs: 8, outputs: 20 }, 'forward'));
  const copies = padded?.body.filter((n) => n.op === 'COPY') ?? [];
  expect(copies.some((n) => n.arg.lanes === 1 && n.src.length === 5)).toBe(true);
  // Weights and images alike: no load of a tensor is left but those of copies.
  expect(padded?.body.filter((n) => n.op === 'LOAD' && n.src[0].op === 'PARAM')).toEqual([]);
  expect(count(plain, 'BARRIER')).toBe(1);
});

it('has more and smaller blocks where more groups run at a time; the order of additions stays', () => {
  const nameFor = (parallelism: number): unknown => {
    const { kernel, e } = makeCase('float32', product({ m: 1024, n: 1024, k: 1024 }));
    return tileOf(byShape(kernel, e, { ...copying, parallelism })?.dispatches[0]?.program);
  };
  expect(nameFor(2)).toBe('stages:128x128x16:8x8:2');
  expect(nameFor(132)).toBe('stages:64x64x16:8x4:2');
});

it('leaves thin products, short sums and devices whose group memory is memory to others', () => {
  const find = (sizes: Parameters<typeof product>[0], caps: EngineCaps): unknown => {
    const { kernel, e } = makeCase('float32', product(sizes));
    return byShape(kernel, e, caps);
  };
  expect(find({ m: 4, n: 512, k: 64 }, copying)).toBeNull();
  expect(find({ m: 64, n: 64, k: 8 }, copying)).toBeNull();
  expect(find({ m: 64, n: 64, k: 64 }, processorCaps)).toBeNull();
});
