/**
 * Every operation on every dtype and every cast between two, in scalars and vectors, on numbers at the edges of the dtypes. By this table the
 * emitters of all engines are compared with the interpreter.
 */
import { type Exprs, type KNode, type KNodeOf, ProgramBuilder } from '@polygrad/core/kernel';
import type { DType, TypedArray } from '@polygrad/core/functions';
import { dtypeInfo, hostArrays, isFloat } from '@polygrad/core/internals';
import type { ProgramCase } from './program-case.ts';

const most = 69;

type Make = (e: Exprs, x: readonly KNode[]) => KNode;

// biome-ignore format: a list
const numbers = [
  0, -0, 1, -1, 0.5, 2, -3.75, 7, 100.5, -129, 255.5, 65504, 3e5, -4e9, 1e10, 1e20, -1e-7, 2 ** -24,
  Infinity, -Infinity, NaN, 2.5, -2.5, 1e-40, 2147483648, 4294967296, 3e38,
];

/** Edges of a dtype: small numbers of both signs, extremes, for floats also halves, infinities and NaN. Inputs turn differently. */
function edges(dtype: DType, turn: number, length: number): TypedArray {
  const { bytes } = dtypeInfo[dtype];
  const view = new DataView(new ArrayBuffer(length * bytes));
  const bits = 8 * bytes;
  const count = numbers.length;
  for (let i = 0; i < length; i++) {
    const at = i * bytes;
    // Over all elements the pairs of two inputs meet in many ways.
    const number = numbers[(i * (turn === 0 ? 7 : 5) + turn * 4 + Math.floor(i / count) * turn) % count]!;
    const k = (i * 7 + turn * 5 + Math.floor(i / 23) * turn) % 23;
    const random = BigInt(Math.imul(i + 1, 2654435761) ^ turn) * 0x9e3779b97f4a7c15n;
    if (dtype === 'bool') view.setUint8(at, (i >> turn) & 1);
    else if (dtype === 'float64') view.setFloat64(at, number, true);
    else if (dtype === 'float32') view.setFloat32(at, number, true);
    else {
      // Floats of 16 bits by pattern, any; integers: extremes, small ones, anything.
      const special = [0n, 1n, -1n, 2n, 3n, -7n, 1n << BigInt(bits - 1), (1n << BigInt(bits - 1)) - 1n];
      const value = BigInt.asUintN(bits, k < 16 ? special[k % 8]! : random >> 20n);
      for (let b = 0; b < bytes; b++) view.setUint8(at + b, Number((value >> BigInt(8 * b)) & 0xffn));
    }
  }
  return new hostArrays[dtype](view.buffer, 0, length);
}

/** The 16-bit floats with one pattern of NaN: the interpreter holds them as numbers, which have only one. */
function oneNaN(dtype: DType, data: TypedArray): void {
  if (!(data instanceof Uint16Array) || !isFloat(dtype)) return;
  const [top, nan] = dtype === 'float16' ? [0x7c00, 0x7e00] : [0x7f80, 0x7fc0];
  data.forEach((x, i) => {
    if ((x & 0x7fff) > top) data[i] = nan;
  });
}

/** out[i] = make(inputs[i]), `lanes` elements at a time and the rest one by one. */
function elementwise(
  name: string,
  from: readonly DType[],
  lanes: number,
  make: Make,
  prepare: (inputs: readonly TypedArray[]) => void = () => undefined,
): ProgramCase {
  const b = new ProgramBuilder();
  const { e } = b;
  // Four at a time there is no rest, so that memories accessed in whole vectors occur, too.
  const length = lanes === 4 ? most - 1 : most;
  const params = from.map((dtype, i) => e.param(i, dtype, 'read', length));
  let out: KNodeOf<'PARAM'> | null = null;
  const step = (at: KNode, width: number): void => {
    const value = make(
      e,
      params.map((p) => b.load(p, at, width)),
    );
    out ??= e.param(from.length, value.dtype as DType, 'write', length);
    b.store(out, at, value);
  };
  const whole = Math.floor(length / lanes);
  b.loop(whole, (i) => step(e.mul(i, e.i32(lanes)), lanes));
  b.loop(length - whole * lanes, (i) => step(e.add(i, e.i32(whole * lanes)), 1));
  const result = out as unknown as KNodeOf<'PARAM'>;
  const inputs = from.map((dtype, i) => edges(dtype, i, length));
  prepare(inputs);
  return {
    name: `${name} x ${lanes}`,
    program: b.build({ name, params: [...params, result] }),
    data: [...inputs, new hostArrays[result.dtype](length)],
    scalars: [],
  };
}

/**
 * Cases of casts from some dtypes to others.
 *
 * @example
 * [...castCases(['float32'], ['int32'], [1])].length > 0; // true
 */
export function* castCases(
  sources: readonly DType[],
  targets: readonly DType[],
  lanes: readonly number[],
): Generator<ProgramCase> {
  for (const from of sources) {
    for (const to of targets) {
      for (const n of lanes) yield elementwise(`${from} to ${to}`, [from], n, (e, [x]) => e.cast(x!, to));
      if (from === 'bool' || to === 'bool' || dtypeInfo[from].bytes !== dtypeInfo[to].bytes) continue;
      for (const n of lanes)
        yield elementwise(
          `bits of ${from} as ${to}`,
          [from],
          n,
          (e, [x]) => e.bitcast(x!, to),
          ([x]) => oneNaN(from, x!),
        );
    }
  }
}

const orders = ['ADD', 'SUB', 'MUL', 'MAX', 'MIN', 'LT', 'LE', 'EQ'] as const;
const floats = ['NEG', 'ABS', 'SQRT', 'FLOOR', 'CEIL', 'TRUNC', 'ROUND', 'ISNAN', 'RECIP'] as const;

/** What is computed of values of one dtype: name, further dtypes of operands, and the expression. */
function* operations(dtype: DType): Generator<readonly [string, readonly DType[], Make]> {
  const one: readonly DType[] = [dtype];
  const two: readonly DType[] = [dtype, dtype];
  type Two = readonly [KNode, KNode];
  for (const op of orders) if (op !== 'SUB' || dtype !== 'bool') yield [op, two, (e, x) => e.binary(op, ...(x as Two))];
  for (const op of ['LT', 'LE', 'EQ'] as const) yield [`NOT ${op}`, two, (e, x) => e.not(e.binary(op, ...(x as Two)))];
  yield ['WHERE', ['bool', dtype, dtype], (e, [c, x, y]) => e.where(c!, x!, y!)];
  yield [
    'conditions',
    [dtype, dtype, 'float32'],
    (e, [x, y, z]) => {
      const [a, b, v] = [x, y, z] as [KNode, KNode, KNode];
      return e.where(e.or(e.lt(a, b), e.not(e.or(e.eq(a, b), e.le(b, a)))), v, e.neg(v));
    },
  ];
  if (dtype === 'bool') {
    for (const op of ['AND', 'OR', 'XOR'] as const) yield [op, two, (e, x) => e.binary(op, ...(x as Two))];
    yield ['NOT', one, (e, [x]) => e.not(x!)];
    return;
  }
  yield [
    'chain',
    two,
    (e, [x, y]) => {
      const [a, b] = [x, y] as [KNode, KNode];
      const z = e.sub(e.mul(e.add(a, b), a), e.constant(dtype, 3));
      return e.where(e.lt(z, b), e.max(z, a), e.neg(z));
    },
  ];
  if (isFloat(dtype)) {
    for (const op of floats) yield [op, one, (e, [x]) => e.unary(op, x!)];
    yield ['DIV', two, (e, x) => e.div(...(x as Two))];
    yield ['EQ itself', one, (e, [x]) => e.intern('EQ', 'bool', x!.lanes, [x!, x!])];
    for (const c of [0, -0, 1.5, -1, Infinity, -Infinity]) {
      const text = Object.is(c, -0) ? '-0' : `${c}`;
      const constant = (e: Exprs, x: readonly KNode[]): Two => [x[0]!, e.constant(dtype, c, x[0]!.lanes)];
      for (const op of ['ADD', 'SUB', 'MUL', 'DIV', 'MAX', 'MIN', 'LT', 'LE', 'EQ'] as const) {
        yield [`${op} with ${text}`, one, (e, x) => e.binary(op, ...constant(e, x))];
        yield [
          `${text} ${op}`,
          one,
          (e, x) => {
            const [a, k] = constant(e, x);
            return e.binary(op, k, a);
          },
        ];
      }
      for (const op of ['LT', 'LE', 'EQ'] as const)
        yield [`NOT ${op} with ${text}`, one, (e, x) => e.not(e.binary(op, ...constant(e, x)))];
    }
    return;
  }
  for (const op of ['NEG', 'NOT', 'ABS'] as const) yield [op, one, (e, [x]) => e.unary(op, x!)];
  for (const op of ['AND', 'OR', 'XOR'] as const) yield [op, two, (e, x) => e.binary(op, ...(x as Two))];
  const { bytes, kind } = dtypeInfo[dtype];
  const bits = 8 * bytes;
  for (const op of ['SHL', 'SHR'] as const) {
    yield [op, two, (e, [x, y]) => e.binary(op, x!, bytes < 4 ? e.and(y!, e.constant(dtype, bits - 1)) : y!)];
    for (const by of [0, 1, bits - 1])
      yield [`${op} by ${by}`, one, (e, [x]) => e.binary(op, x!, e.constant(dtype, by, x?.lanes))];
  }
  for (const op of ['IDIV', 'IREM'] as const) {
    yield [op, two, (e, x) => e.binary(op, ...(x as Two))];
    for (const by of kind === 'uint' ? [1, 4, 7] : [1, -1, 4, 7, -5])
      yield [`${op} by ${by}`, one, (e, [x]) => e.binary(op, x!, e.constant(dtype, by, x?.lanes))];
  }
}

/**
 * Cases of operations on the dtypes.
 *
 * @example
 * [...operationCases(['float32'], [1])].length > 0; // true
 */
export function* operationCases(dtypes: readonly DType[], lanes: readonly number[]): Generator<ProgramCase> {
  for (const dtype of dtypes) {
    for (const [name, from, make] of operations(dtype)) {
      for (const n of lanes) yield elementwise(`${name} on ${dtype}`, from, n, make);
    }
    if (dtypeInfo[dtype].kind !== 'int' && dtypeInfo[dtype].kind !== 'uint') continue;
    for (const op of ['IDIV', 'IREM'] as const)
      for (const n of lanes) {
        const { data, ...rest } = elementwise(`${op} by zero on ${dtype}`, [dtype, dtype], n, (e, x) =>
          e.binary(op, x[0]!, x[1]!),
        );
        const x = data[0]!;
        const zeros = new hostArrays[dtype](x.length);
        yield { ...rest, data: [x, zeros, zeros.slice()], expected: [x, zeros, zeros] };
      }
  }
}
