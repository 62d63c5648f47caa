/**
 * The emitter: a program of the kernel IR in, the text of a JavaScript function out. What each operation means is in `src/ir/ir.ts` of core.
 *
 * A program is a list of nodes in execution order, and one walk prints a line for each. A value becomes a constant with a name, a statement a
 * statement. Vectors are printed lane by lane, so what a node is called is a list of names. Numbers and bool (0 or 1) are JavaScript numbers, 64-bit
 * integers are bigints. JavaScript computes in float64, so every result is rounded, or wrapped, to its dtype.
 */
import type { KNode, KNodeOf, KOp, Program } from '@polygrad/core/kernel/ir';

type Dtype = KNode['dtype'];
const isWide = (dtype: Dtype): boolean => dtype === 'int64' || dtype === 'uint64';
const isFloat = (dtype: Dtype): boolean => dtype === 'float32' || dtype === 'float64';

/** Brings a number into a dtype. Integers below 32 bits are loaded and stored; the library computes with int32 and uint32 in their stead. */
const rounded: Readonly<Record<string, (x: string) => string>> = {
  float64: (x) => x,
  float32: (x) => `Math.fround(${x})`,
  int64: (x) => `BigInt.asIntN(64, ${x})`,
  uint64: (x) => `BigInt.asUintN(64, ${x})`,
  int32: (x) => `(${x}) | 0`,
  uint32: (x) => `(${x}) >>> 0`,
  int16: (x) => `(${x}) << 16 >> 16`,
  uint16: (x) => `(${x}) & 65535`,
  int8: (x) => `(${x}) << 24 >> 24`,
  uint8: (x) => `(${x}) & 255`,
  bool: (x) => `(${x}) ? 1 : 0`,
};

function refuse(what: string): never {
  throw new Error(`this engine has no ${what}`);
}
const round = (dtype: Dtype, x: string): string => (rounded[dtype] ?? refuse(`arithmetic on ${dtype}`))(x);

/** Floats become integers by truncation: NaN gives 0, numbers out of range the nearest integer there is. Integers wrap. */
function cast(from: Dtype, to: Dtype, x: string): string {
  if (to === 'bool') return `${x} != 0 ? 1 : 0`;
  if (isFloat(from) && to === 'int32') return `Math.min(Math.max(${x}, ${-(2 ** 31)}), ${2 ** 31 - 1}) | 0`;
  if (isFloat(from) && to === 'uint32') return `Math.min(Math.max(${x}, 0), ${2 ** 32 - 1}) >>> 0`;
  const ends = to === 'int64' ? '-(2n ** 63n), 2n ** 63n - 1n' : '0n, 2n ** 64n - 1n';
  if (isFloat(from) && isWide(to)) return `saturated(${x}, ${ends})`;
  if (isWide(to)) return round(to, isWide(from) ? x : `BigInt(${x})`);
  if (!isWide(from)) return round(to, x);
  if (isFloat(to)) return to === 'float64' ? `Number(${x})` : `Math.fround(Number(fitted(${x})))`;
  return round(to, `Number(BigInt.asIntN(32, ${x}))`);
}

/** What kernels call: casts that take more than an expression, and one element seen as every dtype. */
export const prelude: string = `'use strict';
const saturated = (x, low, high) => x > low ? (x < high ? BigInt(Math.trunc(x)) : high) : x <= low ? low : 0n;
// Rounding to float64 and then to float32 gives what rounding once does: of what float64 cannot hold, one bit tells whether there was any.
const fitted = (x) => (BigInt.asIntN(54, x) === x ? x : ((x >> 11n) | (x & 2047n ? 1n : 0n)) << 11n);
const bits = new ArrayBuffer(8);
const seenAs = Object.fromEntries(Object.entries(arrays).map(([dtype, Array]) => [dtype, new Array(bits, 0, 1)]));
`;

type Print = (dtype: Dtype, a: string, b: string, c: string) => string;
type Prints = Readonly<Record<string, Print>>;
const each = (words: Record<string, string>, print: (word: string, ...of: Parameters<Print>) => string): Prints =>
  Object.fromEntries(Object.entries(words).map(([op, word]) => [op, (...of: Parameters<Print>) => print(word, ...of)]));
const infix = (sign: string, dtype: Dtype, a: string, b: string): string => round(dtype, `${a} ${sign} ${b}`);
/** By 0 it gives 0. So do infinity and NaN where they become integers, but bigints would throw. */
const divide: typeof infix = (sign, dtype, a, b) => (isWide(dtype) ? `${b} && ` : '') + infix(sign, dtype, a, b);
const call = (name: string, dtype: Dtype, a: string): string => round(dtype, `Math.${name}(${a})`);

/** The base operations, which every emitter prints, by the dtype of their first operand. */
const base: Prints = {
  NEG: (dtype, a) => round(dtype, `-${a}`),
  NOT: (dtype, a) => (dtype === 'bool' ? `${a} ^ 1` : round(dtype, `~${a}`)),
  ...each({ SQRT: 'sqrt', FLOOR: 'floor' }, call),
  ...each({ ADD: '+', SUB: '-', DIV: '/', AND: '&', OR: '|', XOR: '^' }, infix),
  MUL: (dtype, a, b) => round(dtype, isFloat(dtype) || isWide(dtype) ? `${a} * ${b}` : `Math.imul(${a}, ${b})`),
  ...each({ IDIV: '/', IREM: '%' }, divide),
  MAX: (dtype, a, b) => (isWide(dtype) ? `${a} > ${b} ? ${a} : ${b}` : `Math.max(${a}, ${b})`),
  MIN: (dtype, a, b) => (isWide(dtype) ? `${a} < ${b} ? ${a} : ${b}` : `Math.min(${a}, ${b})`),
  SHL: (dtype, a, b) => round(dtype, isWide(dtype) ? `${a} << (${b} & 63n)` : `${a} << ${b}`),
  SHR: (dtype, a, b) => (isWide(dtype) ? `${a} >> (${b} & 63n)` : `${a} ${dtype === 'uint32' ? '>>>' : '>>'} ${b}`),
  ...each({ LT: '<', LE: '<=', EQ: '===' }, (sign, _, a, b) => `${a} ${sign} ${b} ? 1 : 0`),
  WHERE: (_, a, b, c) => `${a} ? ${b} : ${c}`,
};

/** What JavaScript has besides. Core writes all operations that are in neither table in terms of those that are. */
const native: Prints = {
  ...each({ CEIL: 'ceil', TRUNC: 'trunc', EXP: 'exp', LOG: 'log', SIN: 'sin', COS: 'cos', TANH: 'tanh' }, call),
  ...each({ FREM: '%' }, infix),
  ISNAN: (_, a) => `${a} !== ${a} ? 1 : 0`,
};
export const nativeOps: ReadonlySet<KOp> = new Set(Object.keys(native) as KOp[]);

/** The text of `(memory..., scalars..., gx, gy, gz) => void`: tensors as typed arrays, and how many groups run along each axis. */
export function emit({ params, scalars, body }: Program): string {
  const lines: string[] = [];
  /** The names of a node's lanes; of memory its own, or one for each register. */
  const names = new Map<KNode, readonly string[]>();
  const of = (n: KNode | undefined, i = 0): string => names.get(n as KNode)?.[i] as string;
  const name = (n: KNode, text: (i: number) => string, count = n.lanes): unknown =>
    names.set(n, [...Array(count).keys()].map(text));
  const define = (n: KNode, text: (i: number) => string): void => {
    for (let i = 0; i < n.lanes; i++) lines.push(`const v${names.size}_${i} = ${text(i)};`);
    name(n, (i) => `v${names.size}_${i}`);
  };
  /** An element of memory. Registers are variables, which the program picks by constants. */
  const element = (mem: KNode, index: KNode, i: number): string =>
    mem.op === 'REG' && index.op === 'CONST'
      ? of(mem, Number(index.arg.value) * mem.lanes + i)
      : `${of(mem)}[${of(index)} + ${i}]`;
  const literal = (x: number | bigint): string => (typeof x === 'bigint' ? `${x}n` : Object.is(x, -0) ? '-0' : `${x}`);

  const walk: { readonly [O in KOp]?: (n: KNodeOf<O>) => unknown } = {
    PARAM: (n) => name(n, () => `p${n.arg.slot}`),
    SHARED: (n) => define(n, () => `new arrays.${n.dtype}(${n.arg.length})`),
    REG(n) {
      name(n, (i) => `r${names.size}_${i}`, n.arg.length * n.lanes);
      lines.push(`let ${names.get(n)?.join(', ')};`);
    },
    CONST: (n) => name(n, () => `(${literal(n.arg.value)})`),
    SCALAR: (n) => define(n, () => round(n.dtype, isWide(n.dtype) ? `BigInt(s${n.arg.slot})` : `s${n.arg.slot}`)),
    SPECIAL: (n) => name(n, () => (n.arg.kind === 'group' ? 'xyz'.charAt(n.arg.axis) : '0')), // A group is one thread.
    IOTA: (n) => name(n, (i) => `${i}`),
    VEC: (n) => name(n, (i) => of(n.src[i] ?? n.src[0])),
    LANE: (n) => name(n, () => of(n.src[0], n.arg.lane)),
    LOAD(n) {
      const [mem, index, gate, other] = n.src;
      const read = (i: number): string => element(mem, index, i);
      define(n, gate ? (i) => `${of(gate)} ? ${read(i)} : ${of(other, i)}` : read);
    },
    STORE({ src: [mem, index, value, gate] }) {
      const condition = gate ? `if (${of(gate)}) ` : '';
      for (let i = 0; i < value.lanes; i++) lines.push(`${condition}${element(mem, index, i)} = ${of(value, i)};`);
    },
    LOOP(n) {
      name(n, () => `i${names.size}`);
      lines.push(`for (let ${of(n)} = 0; ${of(n)} < ${of(n.src[0])}; ${of(n)}++) {`);
    },
    IF: (n) => lines.push(`if (${of(n.src[0])}) {`),
    ENDLOOP: () => lines.push('}'),
    ENDIF: () => lines.push('}'),
    BARRIER() {}, // A group of one thread has no other to wait for.
    CAST: (n) => define(n, (i) => cast(n.src[0].dtype, n.dtype, of(n.src[0], i))),
    BITCAST: (n) => define(n, (i) => `(seenAs.${n.src[0].dtype}[0] = ${of(n.src[0], i)}, seenAs.${n.dtype}[0])`),
  };
  for (const n of body) {
    const statement = walk[n.op] as ((n: KNode) => unknown) | undefined;
    const print = base[n.op] ?? native[n.op];
    if (statement) statement(n);
    else if (print)
      define(n, (i) => print(n.src[0]?.dtype as Dtype, of(n.src[0], i), of(n.src[1], i), of(n.src[2], i)));
    else refuse(n.op);
  }
  const values = [...params.map(({ arg }) => `p${arg.slot}`), ...scalars.map((_, slot) => `s${slot}`)];
  const loops = ['z', 'y', 'x'].map((axis) => `for (let ${axis} = 0; ${axis} < g${axis}; ${axis}++)`);
  return `(${[...values, 'gx', 'gy', 'gz'].join(', ')}) => {\n${loops.join(' ')} {\n${lines.join('\n')}\n}\n}`;
}
