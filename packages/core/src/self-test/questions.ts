/**
 * The questions of the self-test: small kernels (kernels.ts), what they read, and what they must write.
 *
 * Answers are stored, or follow from whole numbers that every order of sums gives exactly.
 */
import type { Program } from '@polygrad/compiler/ir/ir';
import type { EngineCaps } from '../engine/engine.ts';
import {
  addAndMultiply,
  exponentials,
  groupProduct,
  groupReductions,
  type Storage,
  vectorProduct,
  vectorReductions,
} from './kernels.ts';

/** float32 as it is; 16-bit floats by their bits. */
export type Numbers = Float32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>;

/** One kernel: its inputs, the expected results, and how many units in the last place they may differ. */
export interface Question {
  readonly name: string;
  readonly program: Program;
  readonly inputs: readonly Numbers[];
  readonly answer: Numbers;
  readonly ulp: number;
}

/** A size that no vector fits, and one that all do: functions are asked at that, for half the code. Columns of products fit for the same reason. */
const odd = 37;
const even = 64;
/** So long that every thread of a group has several elements, and some one more than others. */
const rowLength = 1531;

/** Arguments and values of functions, made with 53 bits. */
const exponentialsOf = [
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
const logarithmsOf = [
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
const halvesOf = [
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

const zeros = (dtype: Storage, length: number): Numbers =>
  dtype === 'float32' ? new Float32Array(length) : new Uint16Array(length);

/** One side of the pairs, the list again and again. Here and below loops and no callbacks: all of this runs once, before anything is compiled. */
function side(into: Numbers, from: number, to: number, list: Pairs, at: 0 | 1): Numbers {
  for (let i = from; i < to; i++) into[i] = list[(i - from) % list.length]![at];
  return into;
}

/** Bits of a whole number below 2049 as float16. */
function halfOf(x: number): number {
  if (x === 0) return 0;
  const exponent = 31 - Math.clz32(Math.abs(x));
  return (x < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | ((Math.abs(x) / 2 ** exponent - 1) * 1024);
}

type Factors = Pick<Question, 'inputs' | 'answer' | 'ulp'>;

/** What products read and must write, of small whole numbers. */
function factors(rows: number, inner: number, columns: number): Factors {
  const left = new Float32Array(rows * inner);
  const right = new Float32Array(inner * columns);
  const answer = new Float32Array(rows * columns);
  for (let n = 0; n < left.length; n++) left[n] = (n % 7) - 3;
  for (let n = 0; n < right.length; n++) right[n] = (n % 5) - 2;
  for (let r = 0; r < rows; r++)
    for (let t = 0; t < inner; t++) {
      const factor = left[r * inner + t]!;
      for (let s = 0; s < columns; s++) answer[r * columns + s]! += factor * right[t * columns + s]!;
    }
  return { inputs: [left, right], answer, ulp: 0 };
}

/** Whole numbers as 16-bit floats. */
function asHalves(list: Numbers): Numbers {
  const bits = new Uint16Array(list.length);
  for (let n = 0; n < bits.length; n++) bits[n] = halfOf(list[n]!);
  return bits;
}

/** Places of the largest elements of rows: the last, which fits no vector, the first, and one between. */
const largestAt = [rowLength - 1, 0, 700] as const;

/** Multiples of a half in rows, their sums, and the largest element of each, which is another one in each row. */
function sumsAndLargest(): Factors {
  const rows = largestAt.length;
  const input = new Float32Array(rows * rowLength);
  for (let n = 0; n < input.length; n++) input[n] = ((n * 37) % 101) - 50.5;
  const answer = new Float32Array(2 * rows);
  for (let r = 0; r < rows; r++) {
    const from = r * rowLength;
    const largest = 100 + r;
    input[from + largestAt[r]!] = largest;
    let sum = 0;
    for (let n = from; n < from + rowLength; n++) sum += input[n]!;
    answer[r] = sum;
    answer[rows + r] = largest;
  }
  return { inputs: [input], answer, ulp: 0 };
}

/** What an engine is asked. Threads of a group have more that may go wrong, and a compiler of their own. */
export function questions(caps: EngineCaps): readonly Question[] {
  const { dtypes, simt } = caps;
  // What the library promises of its functions (docs/numerics.md).
  const ulp = dtypes.has('float64') ? 1 : 5;
  const functions = zeros('float32', even);
  const values = zeros('float32', even);
  for (const [into, at] of [
    [functions, 0],
    [values, 1],
  ] as const) {
    side(into, 0, even / 2, exponentialsOf, at);
    side(into, even / 2, even, logarithmsOf, at);
  }
  const size = simt ? odd : even;
  const rows = largestAt.length;
  const asked: Question[] = [
    {
      name: 'sums and largest elements',
      program: simt ? groupReductions(caps, rows, rowLength) : vectorReductions(caps, rows, rowLength),
      ...sumsAndLargest(),
    },
    { name: 'exp and log1p', program: exponentials(caps, even), inputs: [functions], answer: values, ulp },
  ];
  const halves = dtypes.has('float16');
  if (simt) {
    const { inputs, ...rest } = factors(18, 21, 19);
    const [left, right] = inputs as readonly [Numbers, Numbers];
    const program = groupProduct(caps, halves ? 'float16' : 'float32', 18, 21, 19);
    const name = 'a product through group memory';
    asked.push({ name, program, inputs: [halves ? asHalves(left) : left, right], ...rest });
  } else asked.unshift({ name: 'a product', program: vectorProduct(caps, 13, 19, 32), ...factors(13, 19, 32) });
  if (halves) {
    const inputs = [side(zeros('float16', size), 0, size, halvesOf, 0)];
    const answer = side(zeros('float16', size), 0, size, halvesOf, 1);
    asked.push({ name: '16-bit floats', program: addAndMultiply(caps, size, 1.5, 0.25), inputs, answer, ulp: 0 });
  }
  return asked;
}
