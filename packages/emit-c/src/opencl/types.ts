/** Types and literals of OpenCL C 1.2. A bool is `bool`; a vector of bools is a mask, int lanes of 0 or -1; in memory it is a byte. */
import type { Program } from '@polygrad/core/kernel';
import { dtypeInfo } from '@polygrad/core/kernel/emitters';
import { type DType, PrintError } from '../kernel.ts';
import { literal, type Part } from '../parts.ts';

/** What the device has and how the driver binds. */
export interface OpenClOptions {
  /** Double precision (cl_khr_fp64). Default false. */
  readonly fp64?: boolean;
  /** Half precision arithmetic (cl_khr_fp16). Default false. */
  readonly fp16?: boolean;
  /** Atomics on 64-bit integers (cl_khr_int64_base_atomics and _extended_atomics). Default false. */
  readonly int64Atomics?: boolean;
  /** `fma` is fast: MULADD is printed as one. Otherwise as a product and a sum. Default false. */
  readonly fastFma?: boolean;
  /** Every buffer comes with its offset in elements as a further argument, for devices without sub-buffers there. Default false. */
  readonly offsets?: boolean;
  /** No two buffers of a dispatch overlap where one is written: pointers are `restrict`. Default false; outputs may take an input's memory. */
  readonly restrict?: boolean;
  /** Where SHARED lives: `__local` memory, or arrays of the only thread of a group. Default 'local'. */
  readonly shared?: 'local' | 'private';
  /** How unrolling is asked for. Default 'pragma' (`#pragma unroll`). */
  readonly unroll?: 'pragma' | 'attribute' | 'none';
  /**
   * Where the program has barriers, there are more: around branches that only some groups enter, and behind inner loops of different lengths. PoCL
   * needs it (barriers.ts). Default false.
   */
  readonly fenceBranches?: boolean;
  /**
   * Vectors of bytes are stored at once, through a type without alignment, which compilers made of clang know. PoCL's `vstoreN` stores one byte
   * after the other, and of bytes that are bits of a comparison LLVM 15 makes stores to wrong addresses. Default false.
   */
  readonly wholeBytes?: boolean;
  /** Size of the widest vectors, in lanes. Default 16. */
  readonly lanes?: 2 | 4 | 8 | 16;
}

const scalars: Readonly<Record<DType, string>> = {
  float32: 'float',
  float64: 'double',
  float16: 'half',
  bfloat16: '',
  int8: 'char',
  int16: 'short',
  int32: 'int',
  int64: 'long',
  uint8: 'uchar',
  uint16: 'ushort',
  uint32: 'uint',
  uint64: 'ulong',
  bool: 'bool',
};

export const isFloat = (dtype: DType): boolean => dtype.startsWith('float');
export const isUnsigned = (dtype: DType): boolean => dtype.startsWith('uint');
/** Integers C computes in int. */
export const isSmall = (dtype: DType): boolean => !isFloat(dtype) && dtype !== 'bool' && dtypeInfo[dtype].bytes < 4;

/** Bytes of an element in memory. */
export function bytesOf(dtype: DType): 1 | 2 | 4 | 8 {
  return dtypeInfo[dtype].bytes;
}

/** Signed or unsigned integer type as wide as the dtype: what its bits and the masks of its comparisons are. */
export function integerOf(dtype: DType, lanes: number, unsigned = false): string {
  const type = { 1: 'char', 2: 'short', 4: 'int', 8: 'long' }[dtypeInfo[dtype].bytes];
  return (unsigned ? 'u' : '') + type + (lanes === 1 ? '' : lanes);
}

/** The type of a value. */
export function typeName(dtype: DType, lanes: number): string {
  if (lanes === 1) return scalars[dtype];
  return dtype === 'bool' ? `int${lanes}` : scalars[dtype] + lanes;
}

/** The type of an element in memory. */
export function storageType(dtype: DType): string {
  return dtype === 'bool' ? 'uchar' : scalars[dtype];
}

/** Refuses programs with dtypes the device does not have. */
export function checkDtypes(program: Program, { fp64, fp16 }: OpenClOptions): void {
  for (const n of [...program.params, ...program.body]) {
    let remedy = '';
    if (n.dtype === 'float64' && fp64 !== true) remedy = 'float64 needs cl_khr_fp64, which this device does not have';
    if (n.dtype === 'float16' && fp16 !== true)
      remedy = 'float16 needs cl_khr_fp16; without it programs compute in float32 (caps.computes)';
    if (n.dtype === 'bfloat16') remedy = 'OpenCL C has no bfloat16: programs compute in float32 (caps.computes)';
    if (remedy !== '') throw new PrintError('opencl', remedy, n);
  }
}

/** A literal of any number of lanes. */
export function openClConstant(dtype: DType, value: number | bigint, lanes: number): Part {
  if (dtype === 'bool' && lanes > 1) return literal(`(int${lanes})(${Number(value) === 0 ? 0 : -1})`, dtype, lanes);
  const text =
    dtype === 'float32' || dtype === 'float64' || dtype === 'float16'
      ? float(dtype, Number(value))
      : integer(dtype, BigInt(value));
  return literal(lanes === 1 ? text : `(${typeName(dtype, lanes)})(${text})`, dtype, lanes);
}

function integer(dtype: DType, value: bigint): string {
  if (dtype === 'bool') return value === 0n ? 'false' : 'true';
  if (isSmall(dtype)) return `(${scalars[dtype]})(${value})`;
  const end = { int32: '', uint32: 'u', int64: 'L', uint64: 'UL' }[dtype as 'int32'];
  const low = dtype === 'int32' ? -(2n ** 31n) : -(2n ** 63n);
  // A minus is an operator: the least number has no literal.
  if (value === low) return `(${value + 1n}${end} - 1${end})`;
  return value < 0n ? `(${value}${end})` : `${value}${end}`;
}

function float(dtype: 'float32' | 'float64' | 'float16', value: number): string {
  if (Number.isNaN(value)) {
    if (dtype === 'float64') return 'as_double(0x7ff8000000000000UL)';
    return dtype === 'float32' ? 'as_float(0x7fc00000u)' : 'as_half((ushort)0x7e00)';
  }
  const cast = dtype === 'float16' ? '(half)' : dtype === 'float64' && !Number.isFinite(value) ? '(double)' : '';
  const end = dtype === 'float64' ? '' : 'f';
  const negative = value < 0 || Object.is(value, -0);
  const text = Number.isFinite(value) ? magnitude(Math.abs(value)) + end : 'INFINITY';
  const signed = negative ? `-${text}` : text;
  return cast !== '' ? `(${cast}${signed})` : negative ? `(${signed})` : text;
}

/** Decimal if that is short, else hexadecimal; both exact. */
function magnitude(x: number): string {
  const decimal = `${x}`;
  if (decimal.length <= 8 && /^[0-9.]+$/.test(decimal)) return decimal.includes('.') ? decimal : `${decimal}.0`;
  return hexFloat(x);
}

/** `0x1.8p+1`. */
export function hexFloat(x: number): string {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, x);
  const high = bits.getUint32(0);
  const exponent = (high >>> 20) & 0x7ff;
  const digits = (
    (high & 0xfffff).toString(16).padStart(5, '0') + bits.getUint32(4).toString(16).padStart(8, '0')
  ).replace(/0+$/, '');
  const lead = exponent === 0 ? '0' : '1';
  const power = (exponent === 0 ? 1 : exponent) - 1023;
  return `0x${lead}${digits === '' ? '' : `.${digits}`}p${power < 0 ? '' : '+'}${power}`;
}
