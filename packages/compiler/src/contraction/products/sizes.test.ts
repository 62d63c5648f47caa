/** Products for a library whose loops end at sizes given at dispatch: at each size the description says what the program computes. */
import { describe, expect, it } from 'vitest';
import { interpret } from '../../interpreter/interpret.ts';
import { groupsAt } from '../../ir/groups.ts';
import type { ConvolutionProduct, MatrixProduct, Product } from '../../ir/ir.ts';
import { findContraction } from '../contraction.ts';
import { makeCase, type Making, numbers, type Parts, threadCaps, vectorCaps } from '../fixtures/cases.ts';
import { base, convolution, type Geometry } from '../fixtures/convolutions.ts';
import { convolve } from '../fixtures/described.ts';
import { multiply } from '../fixtures/products.ts';
import { product } from '../fixtures/sized.ts';
import { libraryPrograms } from './library.ts';

/** The product at a size, after comparing what it leaves in memory with what programs leave; null where there is none. */
function compared(build: (m: Making) => Parts, n: number, kind: Product['kind']): Product | null {
  let at: Product | null = null;
  for (const caps of [vectorCaps, threadCaps]) {
    const { kernel, e } = makeCase('float64', build);
    const c = findContraction(kernel, e)!;
    const found = libraryPrograms.find(c).find((one) => one.product.kind === kind);
    if (found === undefined) return null;
    const lowered = libraryPrograms.lower(c, e, caps, found);
    const results = [false, true].map((described) => {
      const buffers = kernel.params.map((p) => numbers(p.arg.length, p.arg.slot + 1));
      const temps = lowered.temps.map((bytes) => new Float64Array(bytes / 8).fill(7));
      for (const { program, bindings } of lowered.dispatches) {
        const bound = bindings.map((b) => ('param' in b ? buffers[b.param]! : temps[b.temp]!) as Float64Array);
        if (!described || program.product === undefined) {
          const grid = (caps.simt ? groupsAt(program, [n]) : null) ?? program.grid;
          interpret({ ...program, grid }, bound, [n]);
          continue;
        }
        at = libraryPrograms.at(program.product, [n]);
        if (at.kind === 'matrices') multiply(at, bound);
        else convolve(at, bound);
      }
      return buffers.map((buffer) => [...buffer]);
    }) as [number[][], number[][]];
    for (const [slot, values] of results[0].entries())
      for (const [i, value] of values.entries())
        expect(Math.abs(results[1][slot]![i]! - value), `${n}: ${slot}, ${i}`).toBeLessThan(1e-10);
  }
  return at;
}

const sizes = [8, 13, 31] as const;
const bounds = [8, 31] as const;

/** [heads, n, k] times [heads, k, n]: memory is as long as the size, so distances and strides hang on it. */
function tight(making: Making): Parts {
  const { e, param, range } = making;
  const [heads, depth, most] = [3, 5, 31];
  const size = making.size(8, most);
  const [z, i, j, k] = [range(heads), range(most, size), range(most, size), range(depth)];
  const [a, b, y] = [param(heads * most * depth), param(heads * depth * most), param(heads * most * most, 'write')];
  const rows = e.mul(size, depth);
  return {
    a: e.load(a, e.add(e.mul(z, rows), e.add(e.mul(i, depth), k))),
    b: e.load(b, e.add(e.mul(z, rows), e.add(e.mul(k, size), j))),
    k: [k],
    loops: [z, i, j],
    stores: (sum) => [[y, e.add(e.mul(z, e.mul(size, size)), e.add(e.mul(i, size), j)), sum]],
  };
}

describe('products of matrices of sizes given at dispatch', () => {
  const cases = {
    rows: { m: -1, n: 9, k: 7 },
    'rows, more than once': { m: -3, n: 9, k: 7 },
    columns: { m: 6, n: -1, k: 7 },
    sum: { m: 6, n: 9, k: -1, transposeA: true },
    'sum of the other order': { m: 6, n: 9, k: -2, transposeB: true },
    batch: { m: 6, n: 9, k: 7, batch: -1 },
    'rows and sum': { m: -1, n: 9, k: -1 },
    'with something done to the sums': { m: -1, n: 9, k: 7, batch: 2, epilogue: 'relu' as const },
  };
  it.each(Object.keys(cases))('%s', (name) => {
    const one = cases[name as keyof typeof cases];
    for (const n of sizes) {
      const found = compared(product({ sizes: bounds, ...one }), n, 'matrices') as MatrixProduct | null;
      const of = (x: number): number => (x < 0 ? -x * n : x);
      // Rows and columns are told from each other by the order of the result alone.
      const expected = [of(one.m), of(one.n), of(one.k), of('batch' in one ? one.batch : 1)];
      expect([found?.m, found?.n, found?.k, found?.batch]).toEqual(expected);
    }
  });

  it('with strides that hang on the size', () => {
    for (const n of sizes) {
      const found = compared(tight, n, 'matrices') as MatrixProduct | null;
      expect(found).toMatchObject({ m: n, n, k: 5, batch: 3 });
      expect([found?.a.distance, found?.b.stride, found?.c.distance]).toEqual([5 * n, n, n * n]);
    }
  });
});

describe('convolutions of sizes given at dispatch', () => {
  const geometry: Geometry = { ...base, images: 5, least: 2 };
  const forms: Readonly<Record<string, Partial<Geometry>>> = {
    'same padding': {},
    'stride 2': { stride: [2, 2], size: [5, 9] },
    groups: { groups: 2, inputs: 2, outputs: 4 },
  };
  for (const kind of ['forward', 'kernelGradient'] as const)
    it.each(Object.keys(forms))(`%s, ${kind}`, (name) => {
      const g = { ...geometry, ...forms[name] };
      for (const n of [2, g.images]) {
        const found = compared(convolution(g, kind), n, 'convolution') as ConvolutionProduct | null;
        expect(found).toMatchObject({ images: n, pass: kind === 'forward' ? 'forward' : 'kernel' });
      }
    });
});
