/**
 * What the first engine on a set of instructions must get right before it is used: a product, a reduction, two functions, 16-bit floats, at
 * odd sizes, on threads. An engine that gets one of them wrong is not offered.
 */
import type { Binding } from '@polygrad/core/engine';
import { Exprs, type KNode, linearize, type LoopKernel, optimize, type Program } from '@polygrad/core/kernel';
import { NativeEngine } from './engine.ts';
import type { NativeEngineOptions } from './options.ts';

type Numbers = Float32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>;

/** One kernel: what it reads, what it must write, and how many units in the last place may differ. */
interface Question {
  readonly name: string;
  readonly kernel: LoopKernel;
  readonly inputs: readonly Numbers[];
  readonly answer: Numbers;
  readonly ulp: number;
}

/** A size that no vector fits. */
const length = 37;
/** What the library promises of its functions (docs/numerics.md). */
const functionUlp = 1;

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

function pairs(name: string, op: 'EXP' | 'LOG1P', list: readonly (readonly [number, number])[]): Question {
  const of = (side: 0 | 1): Numbers => Float32Array.from({ length }, (_, i) => list[i % list.length]![side]);
  return {
    name,
    kernel: mapped(name, 'float32', (e, x) => e.unary(op, x)),
    inputs: [of(0)],
    answer: of(1),
    ulp: functionUlp,
  };
}

/** y[i] = f(x[i]). */
function mapped(name: string, dtype: 'float32' | 'float16', f: (e: Exprs, x: KNode) => KNode): LoopKernel {
  const e = new Exprs();
  const [x, y] = [e.param(0, dtype, 'read', length), e.param(1, dtype, 'write', length)];
  const i = e.range(length);
  return { name, params: [x, y], scalars: [], stores: [{ store: e.store(y, i, f(e, e.load(x, i))), ranges: [i] }] };
}

/** A product of matrices of small whole numbers, which is exact whatever the order of sums. */
function product(rows: number, inner: number, columns: number): Question {
  const e = new Exprs();
  const a = e.param(0, 'float32', 'read', rows * inner);
  const b = e.param(1, 'float32', 'read', inner * columns);
  const c = e.param(2, 'float32', 'write', rows * columns);
  const [i, j, k] = [e.range(rows), e.range(columns), e.range(inner)] as const;
  const factors = e.mul(e.load(a, e.add(e.mul(i, inner), k)), e.load(b, e.add(e.mul(k, columns), j)));
  const store = e.store(c, e.add(e.mul(i, columns), j), e.reduce('sum', factors, [k]));
  const left = Float32Array.from({ length: rows * inner }, (_, n) => (n % 7) - 3);
  const right = Float32Array.from({ length: inner * columns }, (_, n) => (n % 5) - 2);
  const answer = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++)
    for (let s = 0; s < columns; s++)
      for (let t = 0; t < inner; t++) answer[r * columns + s]! += left[r * inner + t]! * right[t * columns + s]!;
  const kernel = { name: 'product', params: [a, b, c], scalars: [], stores: [{ store, ranges: [i, j] }] };
  return { name: 'a product', kernel, inputs: [left, right], answer, ulp: 0 };
}

/** The largest of each row. */
function maxima(rows: number): Question {
  const e = new Exprs();
  const x = e.param(0, 'float32', 'read', rows * length);
  const y = e.param(1, 'float32', 'write', rows);
  const [i, k] = [e.range(rows), e.range(length)];
  const store = e.store(y, i, e.reduce('max', e.load(x, e.add(e.mul(i, length), k)), [k]));
  const input = Float32Array.from({ length: rows * length }, (_, n) => ((n * 37) % 101) - 50.5);
  const answer = Float32Array.from({ length: rows }, (_, r) =>
    Math.max(...input.subarray(r * length, (r + 1) * length)),
  );
  const kernel = { name: 'maxima', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
  return { name: 'a reduction', kernel, inputs: [input], answer, ulp: 0 };
}

function questions(): readonly Question[] {
  const small = (side: 0 | 1): Numbers => Uint16Array.from({ length }, (_, i) => halves[i % halves.length]![side]);
  const scaled = mapped('halves', 'float16', (e, x) =>
    e.ternary('MULADD', x, e.constant('float16', 1.5), e.constant('float16', 0.25)),
  );
  return [
    product(13, 19, 37),
    maxima(3),
    pairs('exp', 'EXP', exponentials),
    pairs('log1p', 'LOG1P', logarithms),
    { name: '16-bit floats', kernel: scaled, inputs: [small(0)], answer: small(1), ulp: 0 },
  ];
}

/** Units in the last place between two numbers. */
function distance(a: number, b: number): number {
  if (Object.is(a, b) || a === b) return 0;
  const [x, y] = new Int32Array(Float32Array.of(a, b).buffer) as unknown as [number, number];
  const [m, n] = [x, y].map((bits) => (bits < 0 ? -(bits & 0x7fffffff) : bits)) as [number, number];
  return Number.isNaN(a) || Number.isNaN(b) ? Infinity : Math.abs(m - n);
}

function differs({ answer, ulp }: Question, got: Numbers): number {
  return answer.findIndex((want, i) =>
    answer instanceof Float32Array ? distance(want, got[i]!) > ulp : want !== got[i],
  );
}

/** The first of the questions that an engine answers wrongly, in words; or null. */
function wrongAnswer(engine: NativeEngine): string | null {
  const { caps } = engine;
  const all = questions();
  const programs = all.map(
    ({ kernel }): Program => caps.lowering.legalize!(linearize(optimize(kernel, caps), caps), caps),
  );
  const kernels = engine.compile(programs);
  for (const [n, question] of all.entries()) {
    const { inputs, answer, name } = question;
    const bound = (bytes: number): Binding => ({ buffer: engine.alloc(bytes), offset: 0, bytes });
    const bindings = [...inputs, answer].map((data) => bound(data.byteLength));
    for (const [i, data] of inputs.entries()) engine.upload(bindings[i]!, data);
    engine.submit([{ kind: 'dispatch', kernel: kernels[n]!, bindings, scalars: [] }]);
    const bytes = engine.downloadSync(bindings.at(-1)!, new Uint8Array(answer.byteLength)).buffer as ArrayBuffer;
    const got = answer instanceof Float32Array ? new Float32Array(bytes) : new Uint16Array(bytes);
    const at = differs(question, got);
    if (at >= 0) return `element ${at} of ${name} is ${got[at]}, expected ${answer[at]}`;
  }
  return null;
}

function run(options: NativeEngineOptions): string | null {
  let engine: NativeEngine | null = null;
  try {
    // A second thread takes part where the groups of a kernel are many.
    engine = new NativeEngine({ ...options, threads: 2 });
    return wrongAnswer(engine);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    engine?.dispose();
  }
}

const found = new Map<string, string | null>();

/** What is wrong with native code on this machine, or null. Found once for each set of instructions and width of vectors. */
export function selfTest({ isa, vectorBytes }: NativeEngineOptions = {}): string | null {
  const key = `${isa} ${vectorBytes}`;
  let result = found.get(key);
  if (result === undefined) {
    result = run({ ...(isa && { isa }), ...(vectorBytes && { vectorBytes }) });
    found.set(key, result);
  }
  return result;
}
