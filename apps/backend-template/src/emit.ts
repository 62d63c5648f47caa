/**
 * The emitter: a program of the kernel IR in, the text of a JavaScript function out.
 *
 * A program is a list of nodes in execution order, and one walk prints a line for each: a value becomes a constant with a name, a statement a
 * statement. Vectors are printed lane by lane, so what a node is called is a list of names. Numbers and bool (0 or 1) are JavaScript numbers,
 * 64-bit integers are bigints. JavaScript computes in float64, so every result is rounded, or wrapped, to its dtype. What operations mean, for
 * all emitters, is written in `src/ir/ir.ts` of @polygrad/core.
 */
import type { KNode, Program, ValueOp } from '@polygrad/core/kernel/ir';

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

function round(dtype: Dtype, x: string): string {
  const rule = rounded[dtype];
  if (rule === undefined) throw new Error(`no arithmetic on ${dtype}`);
  return rule(x);
}

/** Floats become integers by truncation: NaN gives 0, numbers out of range the nearest integer there is. Integers wrap. */
function cast(from: Dtype, to: Dtype, x: string): string {
  if (to === 'bool') return `${x} != 0 ? 1 : 0`;
  if (isFloat(from) && to === 'int32') return `Math.min(Math.max(${x}, ${-(2 ** 31)}), ${2 ** 31 - 1}) | 0`;
  if (isFloat(from) && to === 'uint32') return `Math.min(Math.max(${x}, 0), ${2 ** 32 - 1}) >>> 0`;
  if (isFloat(from) && to === 'int64') return `saturated(${x}, -(2n ** 63n), 2n ** 63n - 1n)`;
  if (isFloat(from) && to === 'uint64') return `saturated(${x}, 0n, 2n ** 64n - 1n)`;
  if (isWide(to)) return round(to, isWide(from) ? x : `BigInt(${x})`);
  if (!isWide(from)) return round(to, x);
  return isFloat(to) ? round(to, `Number(fitted(${x}))`) : round(to, `Number(BigInt.asIntN(32, ${x}))`);
}

/** What kernels call: casts that take more than an expression, and one element seen as every dtype. */
export const prelude: string = `'use strict';
const saturated = (x, low, high) =>
  x >= Number(high) ? high : x <= Number(low) ? low : x !== x ? 0n : BigInt(Math.trunc(x));
// A bigint whose rounding to float64, and from there to float32, is the same as rounding once: what does not fit sets the last bit that does.
const fitted = (x) => (BigInt.asIntN(54, x) === x ? x : ((x >> 11n) | (x & 2047n ? 1n : 0n)) << 11n);
const bits = new ArrayBuffer(8);
const seenAs = Object.fromEntries(Object.entries(arrays).map(([dtype, Array]) => [dtype, new Array(bits, 0, 1)]));
`;

type Print = (dtype: Dtype, a: string, b: string, c: string) => string;
const infix = (sign: string): Print => (dtype, a, b) => round(dtype, `${a} ${sign} ${b}`);
const called = (name: string): Print => (dtype, a) => round(dtype, `Math.${name}(${a})`);

/** The base operations, which every emitter prints, by the dtype of their first operand. */
const base: Readonly<Record<string, Print>> = {
  NEG: (dtype, a) => round(dtype, `-${a}`),
  NOT: (dtype, a) => (dtype === 'bool' ? `${a} ^ 1` : round(dtype, `~${a}`)),
  SQRT: called('sqrt'),
  FLOOR: called('floor'),
  ADD: infix('+'),
  SUB: infix('-'),
  MUL: (dtype, a, b) => round(dtype, isFloat(dtype) || isWide(dtype) ? `${a} * ${b}` : `Math.imul(${a}, ${b})`),
  DIV: infix('/'),
  // By 0 they give 0. So do infinity and NaN where they are wrapped, but bigints would throw.
  IDIV: (dtype, a, b) => (isWide(dtype) ? `${b} && ${round(dtype, `${a} / ${b}`)}` : round(dtype, `${a} / ${b}`)),
  IREM: (dtype, a, b) => (isWide(dtype) ? `${b} && ${a} % ${b}` : round(dtype, `${a} % ${b}`)),
  MAX: (dtype, a, b) => (isWide(dtype) ? `${a} > ${b} ? ${a} : ${b}` : `Math.max(${a}, ${b})`),
  MIN: (dtype, a, b) => (isWide(dtype) ? `${a} < ${b} ? ${a} : ${b}` : `Math.min(${a}, ${b})`),
  AND: infix('&'),
  OR: infix('|'),
  XOR: infix('^'),
  SHL: (dtype, a, b) => round(dtype, isWide(dtype) ? `${a} << (${b} & 63n)` : `${a} << ${b}`),
  SHR: (dtype, a, b) => (isWide(dtype) ? `${a} >> (${b} & 63n)` : `${a} ${dtype === 'uint32' ? '>>>' : '>>'} ${b}`),
  LT: (_, a, b) => `${a} < ${b} ? 1 : 0`,
  LE: (_, a, b) => `${a} <= ${b} ? 1 : 0`,
  EQ: (_, a, b) => `${a} === ${b} ? 1 : 0`,
  WHERE: (_, a, b, c) => `${a} ? ${b} : ${c}`,
};

/** What JavaScript has besides. Core writes all operations that are in neither table in terms of those that are. */
const native: Readonly<Record<string, Print>> = {
  ...Object.fromEntries(
    ['CEIL', 'TRUNC', 'EXP', 'EXPM1', 'LOG', 'LOG1P', 'SIN', 'COS', 'TANH'].map((op) => [op, called(op.toLowerCase())]),
  ),
  FREM: infix('%'),
  ISNAN: (_, a) => `${a} !== ${a} ? 1 : 0`,
};
export const nativeOps: ReadonlySet<ValueOp> = new Set(Object.keys(native) as ValueOp[]);

/** The text of `(memory..., scalars..., gx, gy, gz) => void`: tensors as typed arrays, and how many groups run along each axis. */
export function emit({ params, scalars, body }: Program): string {
  const lines: string[] = [];
  /** The names of a node's lanes; of memory its own, or one for each register. */
  const names = new Map<KNode, readonly string[]>();
  const of = (n: KNode | undefined, i = 0): string => names.get(n as KNode)?.[i] as string;
  const define = (n: KNode, lane: (i: number) => string): void => {
    const own = Array.from({ length: n.lanes }, (_, i) => `v${names.size}_${i}`);
    for (const [i, name] of own.entries()) lines.push(`const ${name} = ${lane(i)};`);
    names.set(n, own);
  };
  /** An element of memory. Registers are variables, which the program picks by constants. */
  const element = (mem: KNode, index: KNode, i: number): string =>
    mem.op === 'REG' && index.op === 'CONST'
      ? of(mem, Number(index.arg.value) * mem.lanes + i)
      : `${of(mem)}[${of(index)} + ${i}]`;

  for (const n of body) {
    switch (n.op) {
      case 'PARAM':
        names.set(n, [`p${n.arg.slot}`]);
        break;
      case 'SHARED':
        names.set(n, [`m${names.size}`]);
        lines.push(`const ${of(n)} = new arrays.${n.dtype}(${n.arg.length});`);
        break;
      case 'REG':
        names.set(n, Array.from({ length: n.arg.length * n.lanes }, (_, i) => `r${names.size}_${i}`));
        lines.push(`let ${names.get(n)?.join(', ')};`);
        break;
      case 'CONST': {
        const { value } = n.arg;
        const text = typeof value === 'bigint' ? `${value}n` : Object.is(value, -0) ? '-0' : `${value}`;
        names.set(n, Array.from({ length: n.lanes }, () => `(${text})`));
        break;
      }
      case 'SCALAR':
        define(n, () => round(n.dtype, isWide(n.dtype) ? `BigInt(s${n.arg.slot})` : `s${n.arg.slot}`));
        break;
      case 'SPECIAL':
        // A group is one thread, the first.
        names.set(n, [n.arg.kind === 'group' ? (['x', 'y', 'z'][n.arg.axis] as string) : '0']);
        break;
      case 'IOTA':
        names.set(n, Array.from({ length: n.lanes }, (_, i) => `${i}`));
        break;
      case 'VEC':
        names.set(n, Array.from({ length: n.lanes }, (_, i) => of(n.src[i] ?? n.src[0])));
        break;
      case 'LANE':
        names.set(n, [of(n.src[0], n.arg.lane)]);
        break;
      case 'LOAD': {
        const [mem, index, gate, other] = n.src;
        define(n, (i) => (gate ? `${of(gate)} ? ${element(mem, index, i)} : ${of(other, i)}` : element(mem, index, i)));
        break;
      }
      case 'STORE': {
        const [mem, index, value, gate] = n.src;
        const stores = Array.from({ length: value.lanes }, (_, i) => `${element(mem, index, i)} = ${of(value, i)};`);
        lines.push(`${gate ? `if (${of(gate)}) ` : ''}{ ${stores.join(' ')} }`);
        break;
      }
      case 'LOOP':
        names.set(n, [`i${names.size}`]);
        lines.push(`for (let ${of(n)} = 0; ${of(n)} < ${of(n.src[0])}; ${of(n)}++) {`);
        break;
      case 'IF':
        lines.push(`if (${of(n.src[0])}) {`);
        break;
      case 'ENDLOOP':
      case 'ENDIF':
        lines.push('}');
        break;
      case 'BARRIER':
        break; // The one thread of a group has nobody to wait for.
      case 'CAST':
        define(n, (i) => cast(n.src[0].dtype, n.dtype, of(n.src[0], i)));
        break;
      case 'BITCAST':
        define(n, (i) => `(seenAs.${n.src[0].dtype}[0] = ${of(n.src[0], i)}, seenAs.${n.dtype}[0])`);
        break;
      default: {
        const print = base[n.op] ?? native[n.op];
        if (print === undefined) throw new Error(`this engine has no ${n.op}`);
        define(n, (i) => print(n.src[0]?.dtype ?? 'void', of(n.src[0], i), of(n.src[1], i), of(n.src[2], i)));
      }
    }
  }
  const values = [...params.map(({ arg }) => `p${arg.slot}`), ...scalars.map((_, slot) => `s${slot}`)];
  const loops = ['z', 'y', 'x'].map((axis) => `for (let ${axis} = 0; ${axis} < g${axis}; ${axis}++)`);
  return `(${[...values, 'gx', 'gy', 'gz'].join(', ')}) => {\n${loops.join(' ')} {\n${lines.join('\n')}\n}\n}`;
}
