/**
 * How values of each dtype lie in registers, and literals.
 *
 * bool is a predicate. Small integers are 32-bit registers with the sign or zeros above. 16-bit floats are their bits, so that what is only
 * moved stays as it is; arithmetic on them is done in float32.
 */
import { dtypeInfo } from '@polygrad/core/kernel/emitters';
import type { DType } from './kernel.ts';
import type { RegisterClass, Writer } from './writer.ts';

export const registerOf: Readonly<Record<DType, RegisterClass>> = {
  bool: 'p',
  int8: 'r',
  int16: 'r',
  int32: 'r',
  int64: 'rd',
  uint8: 'r',
  uint16: 'r',
  uint32: 'r',
  uint64: 'rd',
  float16: 'h',
  bfloat16: 'h',
  float32: 'f',
  float64: 'fd',
};

/** The type of a load or store, which extends small integers. */
export const memoryType: Readonly<Record<DType, string>> = {
  bool: 'u8',
  int8: 's8',
  int16: 's16',
  int32: 'b32',
  int64: 'b64',
  uint8: 'u8',
  uint16: 'u16',
  uint32: 'b32',
  uint64: 'b64',
  float16: 'b16',
  bfloat16: 'b16',
  float32: 'f32',
  float64: 'f64',
};

/** The type arithmetic is done in. */
export const computeType: Readonly<Record<Exclude<DType, 'bool'>, string>> = {
  int8: 's32',
  int16: 's32',
  int32: 's32',
  int64: 's64',
  uint8: 'u32',
  uint16: 'u32',
  uint32: 'u32',
  uint64: 'u64',
  float16: 'f32',
  bfloat16: 'f32',
  float32: 'f32',
  float64: 'f64',
};

/** Bytes of an element in memory. */
export function bytesOf(dtype: DType): number {
  return dtypeInfo[dtype].bytes;
}

/** The bits of a register as the type of a move or choice. */
export const bitsType: Readonly<Record<RegisterClass, string>> = {
  p: 'pred',
  h: 'b16',
  r: 'b32',
  rd: 'b64',
  f: 'f32',
  fd: 'f64',
};

export function isFloat(dtype: DType): boolean {
  return dtype.startsWith('float') || dtype === 'bfloat16';
}

/** A float that is held as 16 bits. */
export function isHalf(dtype: DType): dtype is 'float16' | 'bfloat16' {
  return dtype === 'float16' || dtype === 'bfloat16';
}

export function isUnsigned(dtype: DType): boolean {
  return dtype.startsWith('uint');
}

/** An integer of fewer than 32 bits. */
export function isSmall(dtype: DType): boolean {
  return dtype === 'int8' || dtype === 'int16' || dtype === 'uint8' || dtype === 'uint16';
}

const bits = new DataView(new ArrayBuffer(8));

function hex(value: bigint | number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}

/** A float32 literal, exact. */
export function float32Text(value: number): string {
  bits.setFloat32(0, value);
  return `0f${hex(bits.getUint32(0), 8)}`;
}

/** A float64 literal, exact. */
export function float64Text(value: number): string {
  bits.setFloat64(0, value);
  return `0d${hex(bits.getBigUint64(0), 16)}`;
}

/** The 16 bits of a number, rounded to nearest even. `digits` of the fraction are kept, `least` is the exponent of the smallest normal number. */
function halfBits(value: number, digits: number, least: number, infinity: number): number {
  if (Number.isNaN(value)) return infinity | (1 << (digits - 1));
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size === 0) return sign;
  if (size === Number.POSITIVE_INFINITY) return sign | infinity;
  const exponent = Math.max(Math.floor(Math.log2(size)), least);
  // Exact: a scaling by a power of two; the logarithm may be off by one at powers of two, where both readings give the same bits.
  const scaled = size * 2 ** (digits - exponent);
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const rounded = rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
  const above = (exponent - least) * 2 ** digits + rounded;
  return sign | Math.min(above, infinity);
}

/** The bits of a 16-bit float. */
function halfText(dtype: 'float16' | 'bfloat16', value: number): string {
  return `0x${(dtype === 'float16' ? halfBits(value, 10, -14, 0x7c00) : halfBits(value, 7, -126, 0x7f80)).toString(16)}`;
}

/** A literal as an operand; bool needs a register. */
export function literal(w: Writer, dtype: DType, value: number | bigint): string {
  switch (dtype) {
    case 'bool':
      return w.once(`bool ${Number(value) !== 0}`, () => w.op('p', 'mov.pred', Number(value) === 0 ? '0' : '1'));
    case 'float16':
    case 'bfloat16':
      return halfText(dtype, Number(value));
    case 'float32':
      return float32Text(Number(value));
    case 'float64':
      return float64Text(Number(value));
    case 'int64':
      return `${BigInt.asIntN(64, BigInt(value))}`;
    case 'uint64':
      return `${BigInt.asUintN(64, BigInt(value))}U`;
    default:
      return `${value}`;
  }
}

/** A 16-bit float as float32, which holds it exactly. */
export function widen(w: Writer, dtype: 'float16' | 'bfloat16', x: string): string {
  if (dtype === 'float16') return w.op('f', 'cvt.f32.f16', register(w, x));
  const zero = w.once('half zero', () => w.op('h', 'mov.b16', '0'));
  return w.op('f', 'mov.b32', `{${zero}, ${register(w, x)}}`);
}

/** A literal of 16 bits in a register, which conversions take alone. */
function register(w: Writer, x: string): string {
  return x.startsWith('%') ? x : w.op('h', 'mov.b16', x);
}

/** A float32 rounded to a 16-bit float, to nearest even. */
export function narrow(w: Writer, dtype: 'float16' | 'bfloat16', x: string): string {
  if (dtype === 'float16') return w.op('h', 'cvt.rn.f16.f32', x);
  if (w.capability >= 80) return w.op('h', 'cvt.rn.bf16.f32', x);
  const from = w.op('r', 'mov.b32', x);
  const last = w.op('r', 'and.b32', w.op('r', 'shr.u32', from, '16'), '1');
  const rounded = w.op('r', 'shr.u32', w.op('r', 'add.s32', w.op('r', 'add.s32', from, '32767'), last), '16');
  const unordered = w.op('p', 'setp.nan.f32', x, x);
  return w.op('h', 'cvt.u16.u32', w.op('r', 'selp.b32', '32704', rounded, unordered));
}

/** A 32-bit result brought back into a small integer dtype; others as they are. */
export function wrapped(w: Writer, dtype: DType, x: string): string {
  switch (dtype) {
    case 'int8':
      return w.op('r', 'cvt.s32.s8', x);
    case 'int16':
      return w.op('r', 'cvt.s32.s16', x);
    case 'uint8':
      return w.op('r', 'and.b32', x, '255');
    case 'uint16':
      return w.op('r', 'and.b32', x, '65535');
    default:
      return x;
  }
}
