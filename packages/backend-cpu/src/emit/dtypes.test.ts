/** Every operation on every dtype, every cast between two, in scalars and vectors, against the interpreter, which computes in all of them. */
import { type KNode, legalize, ProgramBuilder, type Program } from '@polygrad/core/kernel';
import { createReferenceEngine } from '@polygrad/core/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { createCpuEngine } from '../engine.ts';

type DType = Program['scalars'][number];
// biome-ignore format: a list
const dtypes: readonly DType[] = [
  'float32', 'float64', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
];
const cpu = createCpuEngine({ threads: 1 });
const reference = createReferenceEngine();
afterAll(() => {
  cpu.dispose();
  reference.dispose();
});

const bytesOf = (dtype: DType): number =>
  dtype === 'bool' ? 1 : dtype === 'bfloat16' ? 2 : Number(/\d+$/.exec(dtype)![0]) / 8;
const isFloat = (dtype: DType): boolean => dtype.includes('float');

/** Bytes whose numbers are edges: small ones of both signs, extremes, for floats also halves, infinities and NaN. */
function edges(dtype: DType, length: number, turn: number): Uint8Array {
  const bytes = bytesOf(dtype);
  const memory = new ArrayBuffer(length * bytes);
  const view = new DataView(memory);
  const bits = 8 * bytes;
  const numbers = [
    0,
    -0,
    1,
    -1,
    0.5,
    2,
    -3.75,
    7,
    100.5,
    -129,
    255.5,
    65504,
    3e5,
    -4e9,
    1e10,
    1e20,
    -1e-7,
    2 ** -24,
    Infinity,
    -Infinity,
    NaN,
  ];
  for (let i = 0; i < length; i++) {
    const k = (i * 7 + turn * 5) % 23;
    const at = i * bytes;
    const random = BigInt(Math.imul(i + 1, 2654435761) ^ turn) * 0x9e3779b97f4a7c15n;
    if (dtype === 'bool') view.setUint8(at, (i >> turn) & 1);
    else if (dtype === 'float64') view.setFloat64(at, numbers[k % 21]!, true);
    else if (dtype === 'float32') view.setFloat32(at, numbers[k % 21]!, true);
    else {
      // Floats of 16 bits by pattern, any; integers: extremes, small ones, anything.
      const special = [0n, 1n, -1n, 2n, 3n, -7n, 1n << BigInt(bits - 1), (1n << BigInt(bits - 1)) - 1n];
      const value = BigInt.asUintN(bits, k < 16 ? special[k % 8]! : random >> 20n);
      for (let b = 0; b < bytes; b++) view.setUint8(at + b, Number((value >> BigInt(8 * b)) & 0xffn));
    }
  }
  return new Uint8Array(memory);
}

/** The bytes a program makes of its inputs, on an engine. */
function execute(
  engine: typeof reference,
  program: Program,
  inputs: readonly Uint8Array[],
  outBytes: number,
): Uint8Array {
  const data = [...inputs, new Uint8Array(outBytes)];
  const bindings = data.map((d) => {
    const bytes = Math.ceil(d.length / 8) * 8;
    const buffer = engine.alloc(bytes);
    engine.upload({ buffer, offset: 0, bytes: d.length }, d);
    return { buffer, offset: 0, bytes };
  });
  const kernels = engine.compile([legalize(program, engine.caps)]);
  engine.submit([{ kind: 'dispatch', kernel: kernels[0]!, bindings, scalars: [] }]);
  const out = engine.downloadSync!({ ...bindings[data.length - 1]!, bytes: outBytes }, new Uint8Array(outBytes));
  engine.release(kernels);
  for (const b of bindings) engine.free(b.buffer);
  return out;
}

const length = 69;

/** Compares out[i] = f(inputs[i]) on both engines, in vectors of `lanes` and the rest as scalars. */
function check(
  what: string,
  from: readonly DType[],
  f: (e: ProgramBuilder['e'], x: readonly KNode[]) => KNode,
  prepare: (inputs: Uint8Array[]) => void = () => undefined,
): void {
  const inputs = from.map((dtype, i) => edges(dtype, length, i));
  prepare(inputs);
  for (const lanes of [1, 2, 4, 8, 16]) {
    const b = new ProgramBuilder();
    const { e } = b;
    const params = from.map((dtype, i) => e.param(i, dtype, 'read', length));
    let out: KNode | null = null;
    const step = (at: KNode, width: number): void => {
      const value = f(
        e,
        params.map((p) => b.load(p, at, width)),
      );
      out ??= e.param(from.length, value.dtype as DType, 'write', length);
      b.store(out, at, value);
    };
    const whole = Math.floor(length / lanes);
    b.loop(whole, (i) => step(e.mul(i, e.i32(lanes)), lanes));
    b.loop(length - whole * lanes, (i) => step(e.add(i, e.i32(whole * lanes)), 1));
    const to = (out! as KNode).dtype as DType;
    const program = b.build({ name: what, params: [...params, out!] as Program['params'] });
    const [got, want] = [cpu, reference].map((engine) => execute(engine, program, inputs, length * bytesOf(to)));
    const number = (bytes: Uint8Array, i: number): string => {
      const n = bytesOf(to);
      const raw = Array.from(bytes.subarray(i * n, (i + 1) * n)).reverse();
      const hex = raw.map((x) => x.toString(16).padStart(2, '0')).join('');
      // NaN has many patterns.
      const nan = { float16: 0x7c00n, bfloat16: 0x7f80n, float32: 0x7f800000n, float64: 0x7ff0000000000000n }[
        to as string
      ];
      const mask = (1n << BigInt(8 * n - 1)) - 1n;
      return nan !== undefined && (BigInt(`0x${hex}`) & mask) > nan ? 'nan' : hex;
    };
    for (let i = 0; i < length; i++) {
      if (number(got!, i) !== number(want!, i))
        expect.fail(`${what}, ${lanes} lanes, element ${i}: ${number(got!, i)}, expected ${number(want!, i)}`);
    }
  }
}

describe('casts', () => {
  it.each(dtypes)('from %s', (from) => {
    for (const to of dtypes) check(`${from} to ${to}`, [from], (e, [x]) => e.cast(x!, to));
  });
});

/** Leaves one pattern of NaN: the interpreter holds 16-bit floats as numbers, which have one NaN. */
function oneNaN(dtype: DType): (inputs: Uint8Array[]) => void {
  const [top, nan] = dtype === 'float16' ? [0x7c00, 0x7e00] : dtype === 'bfloat16' ? [0x7f80, 0x7fc0] : [2 ** 17, 0];
  return ([x]) => {
    const bits = bytesOf(dtype) === 2 ? new Uint16Array(x!.buffer) : [];
    for (let i = 0; i < bits.length; i++) if ((bits[i]! & 0x7fff) > top) bits[i] = nan;
  };
}

describe('bitcasts', () => {
  it.each(dtypes.filter((d) => d !== 'bool'))('from %s', (from) => {
    for (const to of dtypes)
      if (to !== 'bool' && bytesOf(to) === bytesOf(from))
        check(`bits of ${from} as ${to}`, [from], (e, [x]) => e.bitcast(x!, to), oneNaN(from));
  });
});

describe('operations', () => {
  it.each(dtypes.filter((d) => d !== 'bool'))('on %s', (dtype) => {
    const both: readonly DType[] = [dtype, dtype];
    for (const op of ['ADD', 'SUB', 'MUL', 'MAX', 'MIN', 'LT', 'LE', 'EQ'] as const)
      check(`${op} on ${dtype}`, both, (e, [x, y]) => e.binary(op, x!, y!));
    check(`NE on ${dtype}`, both, (e, [x, y]) => e.ne(x!, y!));
    for (const op of isFloat(dtype)
      ? (['NEG', 'ABS', 'SQRT', 'FLOOR', 'CEIL', 'TRUNC', 'ROUND', 'ISNAN', 'RECIP'] as const)
      : (['NEG', 'NOT', 'ABS'] as const))
      check(`${op} on ${dtype}`, [dtype], (e, [x]) => e.unary(op, x!));
    if (isFloat(dtype)) check(`DIV on ${dtype}`, both, (e, [x, y]) => e.div(x!, y!));
    else {
      for (const op of ['AND', 'OR', 'XOR'] as const)
        check(`${op} on ${dtype}`, both, (e, [x, y]) => e.binary(op, x!, y!));
      const bits = 8 * bytesOf(dtype);
      const counted = (_: unknown, x: KNode, y: KNode, e: ProgramBuilder['e']): [KNode, KNode] => [
        x,
        e.and(y, e.constant(dtype, bits - 1)),
      ];
      for (const op of ['SHL', 'SHR'] as const) {
        check(`${op} on ${dtype}`, both, (e, [x, y]) => e.binary(op, ...counted(op, x!, y!, e)));
        for (const by of [0, 1, bits - 1])
          check(`${op} by ${by} on ${dtype}`, [dtype], (e, [x]) => e.binary(op, x!, e.constant(dtype, by, x!.lanes)));
      }
      // The interpreter throws for zero.
      const noZero = (inputs: Uint8Array[]): void => {
        const n = bytesOf(dtype);
        const y = inputs[1];
        if (y !== undefined)
          for (let i = 0; i < length; i++) if (y.subarray(i * n, (i + 1) * n).every((b) => b === 0)) y[i * n] = 3;
      };
      for (const op of ['IDIV', 'IREM'] as const) {
        check(`${op} on ${dtype}`, both, (e, [x, y]) => e.binary(op, x!, y!), noZero);
        for (const by of dtype.startsWith('u') ? [1, 4, 7] : [1, -1, 4, 7, -5])
          check(`${op} by ${by} on ${dtype}`, [dtype], (e, [x]) => e.binary(op, x!, e.constant(dtype, by, x!.lanes)));
      }
    }
    check(`WHERE on ${dtype}`, ['bool', dtype, dtype], (e, [c, x, y]) => e.where(c!, x!, y!));
    check(`chain on ${dtype}`, both, (e, [x, y]) => {
      const z = e.sub(e.mul(e.add(x!, y!), x!), e.constant(dtype, 3));
      return e.where(e.lt(z, y!), e.max(z, x!), e.neg(z));
    });
    check(`conditions on ${dtype} choosing float32`, [dtype, dtype, 'float32'], (e, [x, y, z]) =>
      e.where(e.or(e.lt(x!, y!), e.not(e.eq(x!, y!))), z!, e.neg(z!)),
    );
  });

  it('integer division by zero gives 0', () => {
    for (const dtype of ['int8', 'uint16', 'int64', 'uint64'] as const) {
      for (const op of ['IDIV', 'IREM'] as const) {
        const b = new ProgramBuilder();
        const { e } = b;
        const [x, y, out] = [e.param(0, dtype, 'read', 4), e.param(1, dtype, 'read', 4), e.param(2, dtype, 'write', 4)];
        b.loop(4, (i) => b.store(out, i, e.binary(op, b.load(x, i), b.load(y, i))));
        const program = b.build({ name: 'zero', params: [x, y, out] });
        const n = 4 * bytesOf(dtype);
        expect(execute(cpu, program, [new Uint8Array(n).fill(5), new Uint8Array(n)], n)).toEqual(new Uint8Array(n));
      }
    }
  });
});
