/** Loop nests for tests: the kernels a scheduler would ask for, written by hand. */
import { anyLowering } from '../templates/lowering.ts';
import type { EngineCaps } from '../engine/engine.ts';
import { Exprs } from './expr.ts';
import type { Range } from './free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, ReduceOp } from './ir.ts';

/** An engine with vectors of four floats, for tests of the processor's side. */
export const simdCaps: EngineCaps = {
  dtypes: new Set(['float32', 'float64', 'int32', 'uint32', 'bool']),
  nativeOps: new Set(['MULADD', 'ABS']),
  simt: false,
  lowering: anyLowering,
  vectorBytes: 16,
  sharedBytes: 65536,
  maxGroup: 1,
  maxBindings: 64,
  maxBufferBytes: 2 ** 30,
  bindAlign: 4,
  arena: true,
  parallelism: 4,
  atomics: new Set(),
};

/** Row-major index of ranges or other index expressions. */
export function flat(e: Exprs, at: readonly KNode[], shape: readonly number[]): KNode {
  return at.reduce((sum: KNode, x, i) => e.add(e.mul(sum, e.i32(shape[i] as number)), x), e.i32(0));
}

function size(shape: readonly number[]): number {
  return shape.reduce((x, y) => x * y, 1);
}

function kernel(name: string, stores: readonly LoopStore[]): LoopKernel {
  const params = new Map<number, KNode>();
  const scalars: ('float32' | 'int32')[] = [];
  const seen = new Set<KNode>();
  const stack: KNode[] = stores.map((s) => s.store);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'PARAM') params.set(n.arg.slot, n);
    if (n.op === 'SCALAR') scalars[n.arg.slot] = n.dtype as 'float32';
    stack.push(...n.src);
  }
  const list = [...params.entries()].sort((a, b) => a[0] - b[0]).map((x) => x[1]);
  return { name, params: list as LoopKernel['params'][number][], scalars, stores };
}

/** out = f(inputs) over one shape; inputs are read through `views` (index expressions of the ranges). */
export function elementwise(
  shape: readonly number[],
  make: (e: Exprs, at: readonly Range[], input: (slot: number, index: KNode, length: number) => KNode) => KNode,
  outIndex?: (e: Exprs, at: readonly Range[]) => KNode,
): LoopKernel {
  const e = new Exprs();
  const at = shape.map((n) => e.range(n));
  const value = make(e, at, (slot, index, length) => e.load(e.param(slot, 'float32', 'read', length), index));
  const out = e.param(0, value.dtype as 'float32', 'write', size(shape));
  return kernel('elementwise', [{ store: e.store(out, outIndex?.(e, at) ?? flat(e, at, shape), value), ranges: at }]);
}

/** Reduction of slot 1 (row-major, `shape`) over `axes` into slot 0. */
export function reduction(op: ReduceOp, shape: readonly number[], axes: readonly number[], square = false): LoopKernel {
  const e = new Exprs();
  const at = shape.map((n, i) => e.range(n, axes.includes(i) ? 'reduce' : 'loop'));
  const kept = at.filter((_, i) => !axes.includes(i));
  const own = at.filter((_, i) => axes.includes(i));
  const x = e.load(e.param(1, 'float32', 'read', size(shape)), flat(e, at, shape));
  const value = e.reduce(op, square ? e.mul(x, x) : x, own);
  const keptShape = shape.filter((_, i) => !axes.includes(i));
  const out = e.param(0, value.dtype as 'float32', 'write', size(keptShape));
  return kernel(`${op}`, [{ store: e.store(out, flat(e, kept, keptShape), value), ranges: kept }]);
}

/** softmax over one axis of a matrix: max, exp, sum, quotient; with or without a staged row of exponentials. */
export function softmax(rows: number, columns: number, axis: 0 | 1, staged: boolean): LoopKernel {
  const e = new Exprs();
  const [i, j] = [e.range(rows), e.range(columns)];
  const r = e.range(axis === 1 ? columns : rows, 'reduce');
  const input = (p: KNode, q: KNode): KNode =>
    e.load(e.param(1, 'float32', 'read', rows * columns), flat(e, [p, q], [rows, columns]));
  const along = axis === 1 ? input(i, r) : input(r, j);
  const top = e.reduce('max', along, [r]);
  const exp = e.unary('EXP', e.sub(along, top));
  const stage = e.stage('shared', exp, [r]);
  const sum = e.reduce('sum', staged ? e.load(stage, r) : exp, [r]);
  const own = staged ? e.load(stage, axis === 1 ? j : i) : e.unary('EXP', e.sub(input(i, j), top));
  const out = e.param(0, 'float32', 'write', rows * columns);
  return kernel('softmax', [
    { store: e.store(out, flat(e, [i, j], [rows, columns]), e.div(own, sum)), ranges: [i, j] },
  ]);
}

/** Layer norm over rows with the row means as second output; the variance is a reduction that contains another. */
export function layerNorm(rows: number, columns: number): LoopKernel {
  const e = new Exprs();
  const [i, j] = [e.range(rows), e.range(columns)];
  const r = e.range(columns, 'reduce');
  const input = (q: KNode): KNode =>
    e.load(e.param(2, 'float32', 'read', rows * columns), flat(e, [i, q], [rows, columns]));
  const scale = e.load(e.param(3, 'float32', 'read', columns), j);
  const mean = e.mul(e.reduce('sum', input(r), [r]), e.f32(1 / columns));
  const d = e.sub(input(r), mean);
  const variance = e.mul(e.reduce('sum', e.mul(d, d), [r]), e.f32(1 / columns));
  const factor = e.div(e.f32(1), e.unary('SQRT', e.add(variance, e.f32(1e-5))));
  const value = e.mul(e.mul(e.sub(input(j), mean), factor), scale);
  return kernel('layerNorm', [
    { store: e.store(e.param(1, 'float32', 'write', rows), i, mean), ranges: [i] },
    {
      store: e.store(e.param(0, 'float32', 'write', rows * columns), flat(e, [i, j], [rows, columns]), value),
      ranges: [i, j],
    },
  ]);
}

/** out[m, n] = sum over k of a[m, k] * b[k, n], or b[n, k]. */
export function matmul(m: number, n: number, k: number, transposed: boolean): LoopKernel {
  const e = new Exprs();
  const [i, j, l] = [e.range(m), e.range(n), e.range(k, 'reduce')];
  const a = e.load(e.param(1, 'float32', 'read', m * k), flat(e, [i, l], [m, k]));
  const b = e.load(
    e.param(2, 'float32', 'read', k * n),
    transposed ? flat(e, [j, l], [n, k]) : flat(e, [l, j], [k, n]),
  );
  const out = e.param(0, 'float32', 'write', m * n);
  return kernel('matmul', [
    { store: e.store(out, flat(e, [i, j], [m, n]), e.reduce('sum', e.mul(a, b), [l])), ranges: [i, j] },
  ]);
}

/** Zero-padded windows of a row-major image: max pooling with padding, gates on loads. */
export function maxPool(height: number, width: number, window: number, pad: number): LoopKernel {
  const e = new Exprs();
  const [oh, ow] = [height + 2 * pad - window + 1, width + 2 * pad - window + 1];
  const [y, x] = [e.range(oh), e.range(ow)];
  const [ky, kx] = [e.range(window, 'reduce'), e.range(window, 'reduce')];
  const [iy, ix] = [e.sub(e.add(y, ky), e.i32(pad)), e.sub(e.add(x, kx), e.i32(pad))];
  const inside = (v: KNode, n: number): KNode => e.and(e.le(e.i32(0), v), e.lt(v, e.i32(n)));
  const gate = e.and(inside(iy, height), inside(ix, width));
  const value = e.load(
    e.param(1, 'float32', 'read', height * width),
    flat(e, [iy, ix], [height, width]),
    gate,
    e.f32(Number.NEGATIVE_INFINITY),
  );
  const out = e.param(0, 'float32', 'write', oh * ow);
  return kernel('maxPool', [
    { store: e.store(out, flat(e, [y, x], [oh, ow]), e.reduce('max', value, [ky, kx])), ranges: [y, x] },
  ]);
}

/** w and m of several parameters of different sizes updated in place: independent nests in one kernel. */
export function optimizerStep(sizes: readonly number[]): LoopKernel {
  const e = new Exprs();
  const rate = e.scalar(0, 'float32');
  const stores = sizes.flatMap((n, p): LoopStore[] => {
    const i = e.range(n);
    const w = e.param(3 * p, 'float32', 'readwrite', n);
    const m = e.param(3 * p + 1, 'float32', 'readwrite', n);
    const g = e.load(e.param(3 * p + 2, 'float32', 'read', n), i);
    const next = e.add(e.mul(e.load(m, i), e.f32(0.9)), g);
    return [
      { store: e.store(m, i, next), ranges: [i] },
      { store: e.store(w, i, e.sub(e.load(w, i), e.mul(rate, next))), ranges: [i] },
    ];
  });
  return kernel('optimizerStep', stores);
}
