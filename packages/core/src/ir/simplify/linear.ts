/**
 * Linear forms of int32 index expressions: collecting, adding, rebuilding.
 *
 * An int32 sum is kept in one normal form: terms sorted by node number, constant last, subtractions for negative
 * coefficients. Arithmetic wraps modulo 2^32, in which all of this is exact. Bounds are added up as real numbers; where
 * they fit int32, the form is also the mathematical value ("exact"), which division and comparison rules need.
 */
import type { KNode } from '../ir.ts';
import { idOf, type Known, type Linear } from '../node.ts';

/** Sums with more terms stay as they are: rebuilding them would cost more than it saves. */
export const maxTerms = 10;

const emptyList: readonly never[] = [];

/**
 * The linear form of an int32 scalar expression: an offset, and terms with their coefficients.
 *
 * @example
 * const e = new Exprs();
 * const { coefs, offset } = linearOf(e.add(e.mul(e.range(8), 4), 3));
 * coefs; // [4]
 * offset; // 3
 */
export function linearOf(n: KNode): Linear {
  const obj = n as Known;
  if (obj.linear !== null) return obj.linear;
  return (obj.linear = collect(n) ?? { terms: [n], coefs: [1], offset: 0 });
}

/** Sums reach this with their operands' forms known already, so the recursion is one level deep. */
function collect(n: KNode): Linear | null {
  const a = n.src[0] as KNode;
  const b = n.src[1] as KNode;
  switch (n.op) {
    case 'CONST':
      return { terms: emptyList, coefs: emptyList, offset: n.arg.value as number };
    case 'ADD':
      return combine(linearOf(a), 1, linearOf(b), 1);
    case 'SUB':
      return combine(linearOf(a), 1, linearOf(b), -1);
    case 'NEG':
      return scale(linearOf(a), -1);
    case 'MUL':
      return b.op === 'CONST' ? scale(linearOf(a), b.arg.value as number) : null;
    default:
      return null;
  }
}

/** `ka * a + kb * b`, or null when it has too many terms. */
export function combine(a: Linear, ka: number, b: Linear, kb: number): Linear | null {
  if (b.terms.length === 0 && ka === 1) {
    if (a.terms.length > maxTerms) return null;
    const offset = (a.offset + Math.imul(kb, b.offset)) | 0;
    return offset === a.offset ? a : { terms: a.terms, coefs: a.coefs, offset };
  }
  const terms: KNode[] = [];
  const coefs: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.terms.length || j < b.terms.length) {
    const x = a.terms[i];
    const y = b.terms[j];
    const order = x === undefined ? 1 : y === undefined ? -1 : idOf(x) - idOf(y);
    let coef = 0;
    if (order <= 0) coef = Math.imul(ka, a.coefs[i++]!);
    if (order >= 0) coef = (coef + Math.imul(kb, b.coefs[j++]!)) | 0;
    if (coef === 0) continue;
    terms.push((order <= 0 ? x : y)!);
    coefs.push(coef);
  }
  if (terms.length > maxTerms) return null;
  return { terms, coefs, offset: (Math.imul(ka, a.offset) + Math.imul(kb, b.offset)) | 0 };
}

/** `k * a`. */
export function scale(a: Linear, k: number): Linear {
  if (k === 0) return { terms: emptyList, coefs: emptyList, offset: 0 };
  if (k === 1) return a;
  const terms: KNode[] = [];
  const coefs: number[] = [];
  for (let i = 0; i < a.terms.length; i++) {
    const coef = Math.imul(k, a.coefs[i]!);
    if (coef === 0) continue;
    terms.push(a.terms[i]!);
    coefs.push(coef);
  }
  return { terms, coefs, offset: Math.imul(k, a.offset) };
}

/** Least value of the form as a real number. */
export function formLow(f: Linear): number {
  let low = f.offset;
  for (let i = 0; i < f.terms.length; i++) {
    const c = f.coefs[i]!;
    const term = f.terms[i] as Known;
    low += c * (c > 0 ? term.lo : term.hi);
  }
  return low;
}

/** Largest value of the form as a real number. */
export function formHigh(f: Linear): number {
  let high = f.offset;
  for (let i = 0; i < f.terms.length; i++) {
    const c = f.coefs[i]!;
    const term = f.terms[i] as Known;
    high += c * (c > 0 ? term.hi : term.lo);
  }
  return high;
}

/** The terms whose coefficients are wanted, divided by a number, with another offset. */
export function selectTerms(
  f: Linear,
  wanted: (coef: number, i: number) => boolean,
  by: number,
  offset: number,
): Linear {
  return {
    terms: f.terms.filter((_, i) => wanted(f.coefs[i]!, i)),
    coefs: f.coefs.filter(wanted).map((c) => c / by),
    offset,
  };
}

/** The parts of a form that a divisor divides, and the rest; the offset of the rest is in [0, divisor). */
export function splitByDivisor(f: Linear, divisor: number): { quotient: Linear; rest: Linear } {
  const whole = Math.floor(f.offset / divisor);
  return {
    quotient: selectTerms(f, (c) => c % divisor === 0, divisor, whole),
    rest: selectTerms(f, (c) => c % divisor !== 0, 1, f.offset - whole * divisor),
  };
}

/**
 * Finds `k * c * (y / c) + k * (y % c)` in a form and replaces it by `k * y`. `divide(y, c)` makes the quotient node to
 * look for. Returns the form unchanged when there is none.
 */
export function recombine(f: Linear, divide: (y: KNode, c: KNode) => KNode): Linear {
  for (let i = 0; i < f.terms.length; i++) {
    const rem = f.terms[i]!;
    if (rem.op !== 'IREM') continue;
    const [y, c] = rem.src;
    if (c.op !== 'CONST' || (y as Known).lo < 0) continue;
    const want = Math.imul(f.coefs[i]!, c.arg.value as number);
    if (!f.coefs.includes(want)) continue;
    const quotient = linearOf(divide(y, c));
    const at = quotient.terms.length === 1 ? f.terms.indexOf(quotient.terms[0]!) : -1;
    if (at < 0 || quotient.offset !== 0 || f.coefs[at] !== Math.imul(want, quotient.coefs[0]!)) continue;
    const rest = selectTerms(f, (_, k) => k !== i && k !== at, 1, f.offset);
    const merged = combine(rest, 1, linearOf(y), f.coefs[i]!);
    if (merged !== null) return recombine(merged, divide);
  }
  return f;
}
