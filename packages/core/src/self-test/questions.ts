/**
 * The questions of the self-test: small kernels, what they read, and what they must write.
 *
 * Loop nests and not operations: the engine's own ways of shaping loops are asked, without graph, plans and what they count. Products through
 * group memory are programs already: to find and lower a tile takes longer than all the rest, and says nothing of a driver.
 * Answers are stored, or follow from whole numbers that every order of sums gives exactly.
 */
import { bringFunctions } from '@polygrad/compiler/arithmetic/decompose/functions';
import { log1p } from '@polygrad/compiler/arithmetic/decompose/exponential';
import { ProgramBuilder } from '@polygrad/compiler/ir/builder/builder';
import { Exprs } from '@polygrad/compiler/ir/expr';
import type { KNode, LoopKernel, Program } from '@polygrad/compiler/ir/ir';
import type { TargetCaps } from '@polygrad/compiler/ir/target';

/** float32 as it is; 16-bit floats by their bits. */
export type Numbers = Float32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>;

/** One kernel: what it reads, what it must write, and how many units in the last place may differ. */
export interface Question {
  readonly name: string;
  readonly asked: LoopNest | Program;
  readonly inputs: readonly Numbers[];
  readonly answer: Numbers;
  readonly ulp: number;
}

/** A kernel to be lowered in the engine's way. */
export interface LoopNest {
  readonly kernel: LoopKernel;
  readonly e: Exprs;
  /** A product: asked in the tiles that products get. */
  readonly tiled: boolean;
}

type Storage = 'float32' | 'float16';

/** A size that no vector fits, and one that all do: functions are asked at that, for half the code. Columns of products fit for the same reason. */
const odd = 37;
const even = 64;

/** Arguments and values of functions, made with 53 bits. */
const exponentials = [
  [-87.25, 1.2817592313147442e-38],
  [-20.5, 1.2501528663867426e-9],
  [-3, 0.049787068367863944],
  [-0.6931471824645996, 0.49999999904767284],
  [-0.0010000000474974513, 0.99900049978592498],
  [0, 1],
  [9.999999747378752e-5, 1.0001000049976403],
  [0.3333333134651184, 1.3956123973577621],
  [1, Math.E],
  [10.100000381469727, 24343.018710531309],
  [50.5, 8.5481342872980575e21],
  [88.5, 2.7230878250681117e38],
  [Infinity, Infinity],
  [-Infinity, 0],
  [NaN, NaN],
] as const;
const logarithms = [
  [-0.9990000128746033, -6.9077681536682869],
  [-0.75, -1.3862943611198906],
  [-0.5, -Math.LN2],
  [-0.0010000000474974513, -0.0010005003811285299],
  [-1.000000013351432e-10, -1.0000000134014319e-10],
  [0, 0],
  [1.0000000116860974e-7, 9.9999996168609962e-8],
  [0.25, 0.22314355131420976],
  [0.4142135679721832, 0.34657359423912587],
  [1, Math.LN2],
  [7.5, 2.1400661634962708],
  [1000, 6.9087547793152204],
  [2.999999894026671e30, 70.176165043165042],
  [-1, -Infinity],
  [-2, NaN],
] as const;
/** Bits of float16, x * 1.5 + 0.25 rounded to nearest, ties to even: zeros, denormals, a tie, the largest, beyond it, infinity. */
const halves = [
  [0x0000, 0x3400],
  [0x8000, 0x3400],
  [0x0001, 0x3400],
  [0x3c00, 0x3f00],
  [0xbc00, 0xbd00],
  [0x3c01, 0x3f02],
  [0x4248, 0x44f6],
  [0x6800, 0x6a00],
  [0x7800, 0x7a00],
  [0x7bff, 0x7c00],
  [0xfc00, 0xfc00],
] as const;

type Pairs = readonly (readonly [number, number])[];

const numbers = (dtype: Storage, list: readonly number[]): Numbers =>
  dtype === 'float32' ? Float32Array.from(list) : Uint16Array.from(list);

/** So many pairs, the list again and again. */
const repeated = (length: number, list: Pairs): Pairs => Array.from({ length }, (_, n) => list[n % list.length]!);

/** y[i] = f(x[i]). */
function mapped(
  name: string,
  dtype: Storage,
  pairs: Pairs,
  ulp: number,
  f: (e: Exprs, x: KNode, i: KNode) => KNode,
): Question {
  const { length } = pairs;
  const e = new Exprs();
  const [x, y] = [e.param(0, dtype, 'read', length), e.param(1, dtype, 'write', length)];
  const i = e.range(length);
  const stores = [{ store: e.store(y, i, f(e, e.load(x, i), i)), ranges: [i] }];
  const of = (side: 0 | 1): Numbers =>
    numbers(
      dtype,
      pairs.map((pair) => pair[side]),
    );
  const kernel = { name: 'mapped', params: [x, y], scalars: [], stores };
  return { name, asked: { kernel, e, tiled: false }, inputs: [of(0)], answer: of(1), ulp };
}

/** Bits of a whole number below 2049 as float16. */
function halfOf(x: number): number {
  if (x === 0) return 0;
  const exponent = Math.floor(Math.log2(Math.abs(x)));
  return (x < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | ((Math.abs(x) / 2 ** exponent - 1) * 1024);
}

/** What products read and must write, of small whole numbers. */
function factors(
  dtype: Storage,
  rows: number,
  inner: number,
  columns: number,
): Pick<Question, 'inputs' | 'answer' | 'ulp'> {
  const left = Array.from({ length: rows * inner }, (_, n) => (n % 7) - 3);
  const right = Array.from({ length: inner * columns }, (_, n) => (n % 5) - 2);
  const result = new Array<number>(rows * columns).fill(0);
  for (let r = 0; r < rows; r++)
    for (let s = 0; s < columns; s++)
      for (let t = 0; t < inner; t++) result[r * columns + s]! += left[r * inner + t]! * right[t * columns + s]!;
  const of = (list: number[]): Numbers => numbers(dtype, dtype === 'float32' ? list : list.map(halfOf));
  return { inputs: [of(left), of(right)], answer: of(result), ulp: 0 };
}

/** A product of matrices, as a loop nest. */
function product(name: string, rows: number, inner: number, columns: number): Question {
  const e = new Exprs();
  const a = e.param(0, 'float32', 'read', rows * inner);
  const b = e.param(1, 'float32', 'read', inner * columns);
  const c = e.param(2, 'float32', 'write', rows * columns);
  const [i, j, k] = [e.range(rows), e.range(columns), e.range(inner)] as const;
  const sum = e.reduce('sum', e.mul(e.load(a, e.add(e.mul(i, inner), k)), e.load(b, e.add(e.mul(k, columns), j))), [k]);
  const store = e.store(c, e.add(e.mul(i, columns), j), sum);
  const kernel = { name: 'product', params: [a, b, c], scalars: [], stores: [{ store, ranges: [i, j] }] };
  return { name, asked: { kernel, e, tiled: true }, ...factors('float32', rows, inner, columns) };
}

/**
 * A product of matrices through group memory: a group of `side` by `side` threads brings a block of each factor there, in the dtype of the
 * factors, meets, and adds up in float32. No size is a multiple of a block's.
 */
function groupProduct(name: string, dtype: Storage, side: number): Question {
  const [rows, inner, columns] = [18, 21, 19];
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, dtype, 'read', rows * inner);
  const y = e.param(1, dtype, 'read', inner * columns);
  const z = e.param(2, dtype, 'write', rows * columns);
  const left = b.shared('left', dtype, side * side);
  const right = b.shared('right', dtype, side * side);
  const sum = b.reg('sum', 'float32');
  const [down, across] = [Math.ceil(rows / side), Math.ceil(columns / side)];
  const thread = e.special('local', 0, side * side);
  const [r, c] = [e.idiv(thread, side), e.irem(thread, side)];
  const row = e.add(e.mul(e.special('group', 1, down), side), r);
  const column = e.add(e.mul(e.special('group', 0, across), side), c);
  /** An element of a matrix, 0 outside. */
  const element = (of: KNode, i: KNode, most: number, j: KNode, width: number): KNode => {
    const inside = e.and(e.lt(i, most), e.lt(j, width));
    const at = e.add(e.mul(e.min(i, most - 1), width), e.min(j, width - 1));
    return e.where(inside, b.load(of, at), e.constant(dtype, 0));
  };
  const wide = (of: KNode, at: KNode): KNode =>
    dtype === 'float32' ? b.load(of, at) : e.cast(b.load(of, at), 'float32');
  b.store(sum, 0, e.constant('float32', 0));
  b.loop(Math.ceil(inner / side), (block) => {
    const from = e.mul(block, side);
    b.barrier();
    b.store(left, thread, element(x, row, rows, e.add(from, c), inner));
    b.store(right, thread, element(y, e.add(from, r), inner, column, columns));
    b.barrier();
    b.loop(side, (k) => {
      const factor = e.mul(wide(left, e.add(e.mul(r, side), k)), wide(right, e.add(e.mul(k, side), c)));
      b.store(sum, 0, e.add(b.load(sum, 0), factor));
    });
  });
  b.ifThen(e.and(e.lt(row, rows), e.lt(column, columns)), () => {
    const total = b.load(sum, 0);
    b.store(z, e.add(e.mul(row, columns), column), dtype === 'float32' ? total : e.cast(total, dtype));
  });
  const asked = b.build({ name: 'product', grid: [across, down, 1], group: [side * side, 1, 1] });
  return { name, asked, ...factors(dtype, rows, inner, columns) };
}

/** The largest, or the sum, of each row of whole numbers. */
function reduction(name: string, op: 'max' | 'sum', rows: number, columns: number): Question {
  const e = new Exprs();
  const x = e.param(0, 'float32', 'read', rows * columns);
  const y = e.param(1, 'float32', 'write', rows);
  const [i, k] = [e.range(rows), e.range(columns)];
  const store = e.store(y, i, e.reduce(op, e.load(x, e.add(e.mul(i, columns), k)), [k]));
  const input = Float32Array.from({ length: rows * columns }, (_, n) => ((n * 37) % 101) - 50.5);
  const answer = Float32Array.from({ length: rows }, (_, r) =>
    input
      .subarray(r * columns, (r + 1) * columns)
      .reduce((best, v) => (op === 'sum' ? best + v : Math.max(best, v)), op === 'sum' ? 0 : -Infinity),
  );
  const kernel = { name: 'reduction', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
  return { name, asked: { kernel, e, tiled: false }, inputs: [input], answer, ulp: 0 };
}

/** exp of the first half of the elements and log1p of the others: one kernel for the driver to compile, with both in every thread. */
function functions(ulp: number): Question {
  const half = even / 2;
  const pairs = [...repeated(half, exponentials), ...repeated(half, logarithms)];
  return mapped('exp and log1p', 'float32', pairs, ulp, (e, x, i) =>
    e.where(e.lt(i, half), e.unary('EXP', x), e.unary('LOG1P', x)),
  );
}

/** What an engine is asked that holds these dtypes. Threads of a group have more that may go wrong, and a compiler of their own. */
export function questions({
  dtypes,
  simt,
  maxGroup,
}: Pick<TargetCaps, 'dtypes' | 'simt' | 'maxGroup'>): readonly Question[] {
  bringFunctions({ LOG1P: log1p });
  // What the library promises of its functions (docs/numerics.md).
  const ulp = dtypes.has('float64') ? 1 : 5;
  const side = maxGroup < 64 ? 4 : 8;
  const asked = [reduction('a long sum', 'sum', 3, 1531), functions(ulp)];
  if (simt) {
    asked.push(groupProduct('a product through group memory', 'float32', side));
    asked.push(reduction('a largest element', 'max', 3, odd));
  } else asked.unshift(product('a product', 13, 19, 32));
  if (dtypes.has('float16')) {
    asked.push(
      mapped('16-bit floats', 'float16', repeated(simt ? odd : even, halves), 0, (e, x) =>
        e.ternary('MULADD', x, e.constant('float16', 1.5), e.constant('float16', 0.25)),
      ),
    );
    if (simt) asked.push(groupProduct('a product of 16-bit floats', 'float16', side));
  }
  return asked;
}
