/** Products for a library: what is found to be one, that the description says what the program computes, and what is declined. */
import { describe, expect, it } from 'vitest';
import { type ProductLibrary, type TileChoices, byLibrary } from '../template.ts';
import { interpret } from '../../interpreter/interpret.ts';
import type { KNode, MatrixProduct } from '../../ir/ir.ts';
import type { DType } from '../../shape/dtype.ts';
import type { Lowered } from '../../codegen/lowering.ts';
import { makeCase, type Making, numbers, type Parts, threadCaps, vectorCaps } from '../fixtures/cases.ts';
import { multiply } from '../fixtures/products.ts';
import { libraryPrograms } from './library.ts';
import { lowerContraction } from '@polygrad/core/internals';

const library: ProductLibrary = {
  nameOf: () => 'blas',
  programs: libraryPrograms,
  takes: ({ kind, dtype }) => kind === 'matrices' && dtype === 'float64',
  prepare: async () => true,
  onFailure: () => {},
};

/** Choices that have measured everything, in favour of the library; `asked` are the keys. */
function choices(of: ProductLibrary | null, asked: string[] = []): TileChoices {
  return {
    library: of,
    find: (key) => {
      asked.push(key);
      return byLibrary;
    },
    note: () => {},
  };
}

function lower(build: (m: Making) => Parts, own: TileChoices = choices(library), caps = vectorCaps): Lowered {
  const { kernel, e } = makeCase('float64', build);
  return lowerContraction(kernel, e, caps, own) as Lowered;
}

/** All parameters of the kernel after its dispatches, products by their descriptions or by their programs. */
function results(build: (m: Making) => Parts, lowered: Lowered, described: boolean): number[][] {
  const { kernel } = makeCase('float64', build);
  const buffers = kernel.params.map((p) => numbers(p.arg.length, p.arg.slot + 1));
  const temps = lowered.temps.map((bytes) => new Float64Array(bytes / 8).fill(7));
  for (const { program, bindings } of lowered.dispatches) {
    const bound = bindings.map((b) => ('param' in b ? buffers[b.param] : temps[b.temp]) as Float64Array);
    if (described && program.product?.kind === 'matrices') multiply(program.product as MatrixProduct, bound);
    else interpret(program, bound);
  }
  return buffers.map((buffer) => [...buffer]);
}

interface Form {
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  readonly batch?: number;
  /** Elements between rows that belong to something else, and before the first. */
  readonly gap?: number;
  readonly epilogue?: boolean;
}
const [m, n, k] = [19, 21, 23];

function product({ transposeA = false, transposeB = false, batch = 1, gap = 0, epilogue = false }: Form) {
  return (x: Making): Parts => {
    const { e } = x;
    const matrix = (down: number, across: number): { length: number; stride: number; distance: number } => {
      const stride = across + gap;
      return { stride, distance: down * stride, length: gap + batch * down * stride };
    };
    const a = transposeA ? matrix(k, m) : matrix(m, k);
    const b = transposeB ? matrix(n, k) : matrix(k, n);
    const [pa, pb, y] = [x.param(a.length), x.param(b.length), x.param(batch * m * n, 'write')];
    const [z, i, j, s] = [x.range(batch), x.range(m), x.range(n), x.range(k)];
    const own = (l: typeof a, row: KNode, column: KNode) => x.at([z, l.distance], [row, l.stride], [column, 1], gap);
    return {
      a: e.load(pa, transposeA ? own(a, s, i) : own(a, i, s)),
      b: e.load(pb, transposeB ? own(b, j, s) : own(b, s, j)),
      k: [s],
      loops: [z, i, j],
      stores: (sum) => [[y, x.at([z, m * n], [i, n], [j, 1]), epilogue ? e.max(sum, e.constant('float64', 0)) : sum]],
    };
  };
}

const forms: readonly Form[] = [
  {},
  { transposeA: true },
  { transposeB: true },
  { transposeA: true, transposeB: true },
  { batch: 3 },
  { batch: 2, transposeB: true, gap: 5 },
  { gap: 4 },
  { epilogue: true },
  { epilogue: true, batch: 2, transposeA: true },
];

describe('products for a library', () => {
  it.each(forms)('are described as they are computed: %j', (form) => {
    for (const caps of [vectorCaps, threadCaps]) {
      const lowered = lower(product(form), choices(library), caps);
      const described = lowered.dispatches.filter((d) => d.program.product !== undefined);
      expect(described.length).toBe(1);
      expect(lowered.dispatches.length).toBe(form.epilogue ? 2 : 1);
      expect(lowered.temps).toEqual(form.epilogue ? [8 * (form.batch ?? 1) * m * n] : []);
      const found = described[0]?.program.product as MatrixProduct;
      expect([found.m, found.n, found.k, found.batch]).toEqual([m, n, k, form.batch ?? 1]);
      const [wanted, got] = [false, true].map((by) => results(product(form), lowered, by)) as [number[][], number[][]];
      for (const [slot, values] of wanted.entries())
        for (const [at, value] of values.entries())
          expect(Math.abs((got[slot]?.[at] as number) - value)).toBeLessThan(1e-12);
    }
  });

  it('of 16-bit floats are summed in float32 and kept in 16 bits, or in float32 where more is done to the sums', () => {
    const takesAll = choices({ ...library, takes: ({ kind }) => kind === 'matrices' });
    for (const dtype of ['float16', 'bfloat16'] as const) {
      const build = (after: (x: Making, sum: KNode) => KNode, kept: DType) => (x: Making) => {
        const { e } = x;
        const [pa, pb] = [x.param(m * k, 'read', dtype), x.param(k * n, 'read', dtype)];
        const y = x.param(m * n, 'write', kept);
        const [i, j, s] = [x.range(m), x.range(n), x.range(k)];
        return {
          a: e.cast(e.load(pa, x.at([i, k], [s, 1])), 'float32'),
          b: e.cast(e.load(pb, x.at([s, n], [j, 1])), 'float32'),
          k: [s],
          loops: [i, j],
          stores: (sum: KNode) => [[y, x.at([i, n], [j, 1]), after(x, sum)]] as const,
        };
      };
      const productsOf = (after: (x: Making, sum: KNode) => KNode, kept: DType = dtype) => {
        const { kernel, e } = makeCase('float32', build(after, kept));
        const lowered = lowerContraction(kernel, e, threadCaps, takesAll) as Lowered;
        return [
          lowered.dispatches.length,
          lowered.dispatches.flatMap(({ program }) => (program.product as MatrixProduct | undefined) ?? []),
        ] as const;
      };
      const [one, [rounded]] = productsOf((x, sum) => x.e.cast(sum, dtype));
      expect([one, rounded?.dtype, rounded?.result]).toEqual([1, dtype, dtype]);
      const [alone, [whole]] = productsOf((_, sum) => sum, 'float32');
      expect([alone, whole?.dtype, whole?.result]).toEqual([1, dtype, 'float32']);
      const [two, [apart]] = productsOf((x, sum) => x.e.cast(x.e.max(sum, x.e.constant('float32', 0)), dtype));
      expect([two, apart?.dtype, apart?.result, apart?.c.stride]).toEqual([2, dtype, 'float32', n]);
      // Rounded to other 16 bits than the factors' is no form of the library.
      const other = dtype === 'float16' ? 'bfloat16' : 'float16';
      expect(productsOf((x, sum) => x.e.cast(sum, other), other)[0]).toBe(2);
    }
  });

  it('are asked about under a key of their own, and not where the library does not take them', () => {
    const asked: string[] = [];
    lower(product({}), choices(library, asked));
    lower(product({ epilogue: true }), choices(library, asked));
    expect(asked.map((key) => key.split(' ').at(-1))).toEqual(['blas', 'blas+']);
    const without = (of: ProductLibrary | null, caps = vectorCaps): string[] => {
      const keys: string[] = [];
      const lowered = lower(product({}), choices(of, keys), caps);
      expect(lowered.dispatches.some((d) => d.program.product !== undefined)).toBe(false);
      return keys;
    };
    expect(without(null)).toEqual([]);
    expect(without({ ...library, takes: () => false })).toEqual([]);
    expect(without({ ...library, takes: () => false }, threadCaps).length).toBe(1);
  });

  it('are not what is gathered, computed on the way, or strided along every loop', () => {
    const others: Readonly<Record<string, (x: Making) => Parts>> = {
      'every second element': (x) => {
        const parts = product({})(x);
        const { e } = x;
        const wide = x.param(2 * m * k);
        const [i] = parts.loops.slice(1) as [KNode];
        return { ...parts, a: e.load(wide, x.at([i, 2 * k], [parts.k[0] as KNode, 2])) };
      },
      'a factor that is computed': (x) => {
        const parts = product({})(x);
        return { ...parts, a: x.e.mul(parts.a, x.e.constant('float64', 2)) };
      },
    };
    for (const [name, build] of Object.entries(others)) {
      const { kernel, e } = makeCase('float64', build);
      const lowered = lowerContraction(kernel, e, vectorCaps, choices(library));
      expect(lowered?.dispatches.some((d) => d.program.product !== undefined) ?? false, name).toBe(false);
    }
  });
});
