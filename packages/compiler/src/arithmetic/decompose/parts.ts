/**
 * Parts of numbers: signs, powers of two, leading bits, in float32 and float64. Functions rather than methods of float-math.ts, whose files
 * every program has: these come with the functions that use them.
 */
import type { KNode } from '../../ir/ir.ts';
import type { FloatMath, Math32, Math64, Whole } from '../float-math.ts';

/** 2^(n + plus), which must be a normal number. */
export function powerOf(m: FloatMath, n: Whole, plus: number = 0): KNode {
  if (m.isSingle()) return m.fromBits(m.shl(m.moved(n, 127 + plus, 9), 23));
  const { rest, part } = (m as Math64).powers(plus === 0 ? n.value : m.add(n.value, plus));
  return m.mul(rest, part);
}

/** 2^(-2n) for n >= 0; 2^-120 from n = 60 on. */
export function inverseSquare(m: FloatMath, n: Whole): KNode {
  if (!m.isSingle()) return (m as Math64).smallPower(m.mul(m.min(n.value, 60), -2));
  const capped = m.min(m.sub(n.bits, n.bias), 60);
  return m.fromBits(m.sub(127 << 23, m.shl(capped, 24)));
}

/**
 * a cut or rounded to half the significant bits or less, so that products of two such numbers are exact: to 12 bits; in float64 to 24, for numbers in
 * float32's range.
 */
export function headOf(m: FloatMath, a: KNode): KNode {
  return m.isSingle() ? m.fromBits(m.and(m.bits(a), 0xfffff000)) : m.cast(m.cast(a, 'float32'), 'float64');
}

/** The sign of a, for `withSign`. */
export function signOf(m: FloatMath, a: KNode): KNode {
  return m.isSingle() ? m.and(m.bits(a), 0x80000000) : isNegative(m, a);
}

/** a >= 0 with that sign. */
export function withSign(m: FloatMath, a: KNode, sign: KNode): KNode {
  return m.isSingle() ? m.fromBits(m.or(m.bits(a), sign)) : m.where(sign, m.neg(a), a);
}

/** True for negative numbers and for -0. The sign survives the cast to float32. */
export function isNegative(m: FloatMath, a: KNode): KNode {
  return m.lt(m.bitcast(m.cast(a, 'float32'), 'int32'), 0);
}

/** An integer-valued float64 of at most 2^22 in size, as a number of float32. */
export function wholeOf(m: Math32, wide: KNode): Whole {
  const value = m.cast(wide, 'float32');
  return m.caps.simt ? m.converted(value) : m.shifted(value);
}

/** The value of the first test that holds; the last value if none does. */
export function choose(m: FloatMath, tests: readonly KNode[], values: readonly number[]): KNode {
  return tests.reduceRight((rest, test, i) => m.where(test, values[i]!, rest), m.c(values[tests.length]!));
}

/** a as a rounded number: the engine must not contract a product into a sum. */
export function rounded(m: FloatMath, a: KNode): KNode {
  return m.unary('ROUNDED', a);
}
