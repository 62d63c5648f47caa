/** Types and literals of WGSL. Infinities and NaN are made from bits when the kernel runs: constant expressions may not hold them. */
import type { Program } from '@polygrad/core/kernel';
import type { Context } from '../dialect.ts';
import { type DType, PrintError } from '../kernel.ts';
import { literal, name, type Part, vectorOf } from '../parts.ts';

/** What the device has and how the driver binds. */
export interface WgslOptions {
  /** The device has `shader-f16`: float16 is computed natively. Default false. */
  readonly f16?: boolean;
  /** Most groups in one dimension of a dispatch; larger grids are folded. Default 65535. */
  readonly maxGroups?: number;
  /**
   * The kernel runs in pieces, each dispatched with the number of its first group in the uniform block (`groupAt`); nothing is
   * folded, and no piece may have more groups in a dimension than the device dispatches. Default false.
   */
  readonly pieces?: boolean;
  /** Bind group of the uniform block with the scalars; the buffers are in group 0. Default 1. */
  readonly scalarGroup?: number;
  /**
   * Parameters are declared with their lengths, and bindings must hold them whole: compilers then check indices against a constant, or
   * not at all. Not those of which fewer elements may be bound. Not together with `same`. Default false.
   */
  readonly sized?: boolean;
  /** How MULADD is printed: `fma(a, b, c)` or `a * b + c`, which the driver may contract. Default 'fma'. */
  readonly muladd?: 'fma' | 'plain';
  /**
   * Parameters that are the same memory in this dispatch, by slot: the first is read through the binding of the second, because
   * WebGPU lets no buffer be bound for reading and writing at once. Both have one dtype and the same offset.
   */
  readonly same?: ReadonlyMap<number, number>;
}

const scalars: Readonly<Partial<Record<DType, string>>> = {
  float32: 'f32',
  float16: 'f16',
  int32: 'i32',
  uint32: 'u32',
  bool: 'bool',
};

/** Refuses programs with dtypes WGSL does not have. */
export function checkDtypes(program: Program, f16: boolean): void {
  for (const n of [...program.params, ...program.body]) {
    if (n.dtype === 'void' || (scalars[n.dtype] !== undefined && (n.dtype !== 'float16' || f16))) continue;
    const remedy =
      n.dtype === 'float16'
        ? 'float16 needs the feature shader-f16; without it programs compute in float32 (caps.computes)'
        : `WGSL has no ${n.dtype}: cast to float32, int32, uint32 or bool`;
    throw new PrintError('wgsl', remedy, n);
  }
}

/** `f32`, `vec4<f32>`. */
export function typeName(dtype: DType, lanes: number): string {
  const scalar = scalars[dtype]!;
  return lanes === 1 ? scalar : `vec${lanes}<${scalar}>`;
}

/** `f32x4`: a type inside a name. */
export function suffix(dtype: DType, lanes: number): string {
  return lanes === 1 ? scalars[dtype]! : `${scalars[dtype]}x${lanes}`;
}

/** How a buffer holds a dtype. */
export function storageType(dtype: DType): string {
  return dtype === 'bool' ? 'u32' : scalars[dtype]!;
}

const bits = new DataView(new ArrayBuffer(4));

/** The bits of a float32. */
export function float32Bits(value: number): number {
  bits.setFloat32(0, value);
  return bits.getUint32(0);
}

/** A literal of any number of lanes. */
export function wgslConstant(c: Context, dtype: DType, value: number | bigint, lanes: number): Part {
  const one = scalarConstant(c, dtype, Number(value));
  if (lanes === 1) return one;
  return vectorOf(`${typeName(dtype, lanes)}(${one.text})`, dtype, lanes, [one]);
}

function scalarConstant(c: Context, dtype: DType, value: number): Part {
  switch (dtype) {
    case 'bool':
      return literal(value === 0 ? 'false' : 'true', dtype);
    case 'uint32':
      return literal(`${value >>> 0}u`, dtype);
    case 'int32':
      if (value === -2147483648) return literal('i32(-2147483648)', dtype);
      return literal(value < 0 ? `(${value}i)` : `${value}i`, dtype);
    default: {
      if (!Number.isFinite(value)) return special(c, dtype, value);
      const end = dtype === 'float16' ? 'h' : 'f';
      if (Object.is(value, -0)) return literal(`(-0${end})`, dtype);
      // Compilers may read what is below the normal numbers as zero.
      if (dtype === 'float32' && value !== 0 && Math.abs(value) < 2 ** -126)
        return literal(`bitcast<f32>(${float32Bits(value)}u)`, dtype);
      const text = `${value}`;
      return literal(value < 0 ? `(${text}${end})` : text + end, dtype);
    }
  }
}

/** Infinities and NaN by name: their bits are read from variables, so that no compiler sees a constant. */
function special(c: Context, dtype: DType, value: number): Part {
  const [title, pattern] = Number.isNaN(value)
    ? ['nan', '0x7fc00000u']
    : value > 0
      ? ['infinity', '0x7f800000u']
      : ['minus_infinity', '0xff800000u'];
  c.helper(`${title}_bits`, () => `var<private> ${title}_bits: u32 = ${pattern};`);
  if (dtype === 'float32') {
    c.prologue(title, () => `let ${title} = bitcast<f32>(${title}_bits);`);
    return name(title, dtype);
  }
  const half = `${title}_f16`;
  c.prologue(half, () => `let ${half} = f16(bitcast<f32>(${title}_bits));`);
  return name(half, dtype);
}
