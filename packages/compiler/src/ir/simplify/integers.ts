/**
 * Integers: linear forms of int32 index expressions (collecting, adding, rebuilding), and the rules that use them.
 *
 * An int32 sum is kept in one normal form: terms sorted by node number, constant last, subtractions for negative
 * coefficients. Arithmetic wraps modulo 2^32, in which all of this is exact. Bounds are added up as real numbers; where
 * they fit int32, the form is also the mathematical value ("exact"), which division and comparison rules need.
 */
import type { Factory } from './factory.ts';
import type { KNode } from '../ir.ts';
import type { BinaryOp } from '../operations.ts';
import { assumeBounds, highOf, idOf, type Known, type Linear, lowOf } from '../node.ts';

/** Sums with more terms stay as they are: rebuilding them would cost more than it saves. */
const maxTerms = 10;

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
  const a = n.src[0]!;
  const b = n.src[1]!;
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
  // As long as they may become, and cut: arrays that grow begin with room for 17.
  const most = a.terms.length + b.terms.length;
  const terms = new Array<KNode>(most);
  const coefs = new Array<number>(most);
  let count = 0;
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
    terms[count] = (order <= 0 ? x : y)!;
    coefs[count++] = coef;
  }
  if (count > maxTerms) return null;
  if (count < most) {
    terms.length = count;
    coefs.length = count;
  }
  return { terms, coefs, offset: (Math.imul(ka, a.offset) + Math.imul(kb, b.offset)) | 0 };
}

/** `k * a`. */
export function scale(a: Linear, k: number): Linear {
  if (k === 0) return { terms: emptyList, coefs: emptyList, offset: 0 };
  if (k === 1) return a;
  const terms = new Array<KNode>(a.terms.length);
  const coefs = new Array<number>(a.terms.length);
  let count = 0;
  for (let i = 0; i < a.terms.length; i++) {
    const coef = Math.imul(k, a.coefs[i]!);
    if (coef === 0) continue;
    terms[count] = a.terms[i]!;
    coefs[count++] = coef;
  }
  if (count < terms.length) {
    terms.length = count;
    coefs.length = count;
  }
  return { terms, coefs, offset: Math.imul(k, a.offset) };
}

/** Least value of the form as a real number. */
export function formLow(f: Linear): number {
  return formBound(f, false);
}

/** Largest value of the form as a real number. */
export function formHigh(f: Linear): number {
  return formBound(f, true);
}

function formBound({ offset, terms, coefs }: Linear, isHigh: boolean): number {
  let bound = offset;
  for (let i = 0; i < terms.length; i++) {
    const c = coefs[i]!;
    const term = terms[i] as Known;
    bound += c * (c > 0 === isHigh ? term.hi : term.lo);
  }
  return bound;
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
function splitByDivisor(f: Linear, divisor: number): { quotient: Linear; rest: Linear } {
  const whole = Math.floor(f.offset / divisor);
  return {
    quotient: selectTerms(f, (c) => c % divisor === 0, divisor, whole),
    rest: selectTerms(f, (c) => c % divisor !== 0, 1, f.offset - whole * divisor),
  };
}

/**
 * Finds `k * c * (y / c) + k * (y % c)` in a form and replaces it by `k * y`, which holds for every sign of `y`: both cut off. `divide(y, c)` makes
 * the quotient node to look for. Returns the form unchanged when there is none.
 */
function recombine(f: Linear, divide: (y: KNode, c: KNode) => KNode): Linear {
  // Outside of the loop: what a function takes from it is kept anew at each turn.
  let at = -1;
  let i = 0;
  for (; i < f.terms.length; i++) {
    const rem = f.terms[i]!;
    if (rem.op !== 'IREM') continue;
    const y = rem.src[0];
    const c = rem.src[1];
    if (c.op !== 'CONST') continue;
    const want = Math.imul(f.coefs[i]!, c.arg.value as number);
    if (!f.coefs.includes(want)) continue;
    const quotient = linearOf(divide(y, c));
    at = quotient.terms.length === 1 ? f.terms.indexOf(quotient.terms[0]!) : -1;
    if (at < 0 || quotient.offset !== 0 || f.coefs[at] !== Math.imul(want, quotient.coefs[0]!)) continue;
    const rest = selectTerms(f, (_, k) => k !== i && k !== at, 1, f.offset);
    const merged = combine(rest, 1, linearOf(y), f.coefs[i]!);
    if (merged !== null) return recombine(merged, divide);
  }
  return f;
}

// Integer rules: sums in normal form, division and remainder by constants, comparisons, all with bounds.
//
// Full strength for int32 scalars (index arithmetic); other integer dtypes and vectors get the local rules only. Every
// function takes the factory and returns the simplified node, or null for "no rule applies, make it as asked".

/** The literal of a constant, else null. */
export function literalOf(n: KNode): number | bigint | null {
  return n.op === 'CONST' ? n.arg.value : null;
}

/** True for a constant with this value, bigint or number. */
export function isLiteral(n: KNode, value: number): boolean {
  // biome-ignore lint/suspicious/noDoubleEquals: 0n == 0 is wanted
  return n.op === 'CONST' && n.arg.value == value;
}

/**
 * The node of a linear form, in normal form: what is added, what is subtracted, the constant last. Bounds of the whole sum are tighter
 * than those of its parts.
 *
 * @param order sorts terms by their numbers in the form, before that
 */
export function fromLinear(e: Factory, form: Linear, order?: (i: number, j: number) => number): KNode {
  const { terms, coefs } = form;
  if (terms.length === 0) return e.i32(form.offset);
  if (terms.length === 1 && coefs[0] === 1 && form.offset === 0) return terms[0]!;
  const sorted = orderOf(coefs, order);
  let sum: KNode | null = null;
  let { offset } = form;
  for (let k = 0; k < terms.length; k++) {
    const i = sorted === null ? k : sorted[k]!;
    const term = terms[i]!;
    const coef = coefs[i]!;
    if (sum === null && coef < 0 && offset !== 0) {
      sum = e.i32(offset);
      offset = 0;
    }
    if (sum !== null) sum = e.intern(coef < 0 ? 'SUB' : 'ADD', 'int32', 1, [sum, product(e, term, Math.abs(coef))]);
    else sum = coef === -1 ? e.intern('NEG', 'int32', 1, [term]) : product(e, term, coef);
  }
  if (offset !== 0) sum = e.intern('ADD', 'int32', 1, [sum!, e.i32(offset)]);
  const node = sum!;
  (node as Known).linear = form;
  const low = formLow(form);
  const high = formHigh(form);
  if (low >= -2147483648 && high <= 2147483647) assumeBounds(node, low, high);
  return node;
}

/** The order of the terms of a sum, or null where it is their own: most sums only add, in the order of their terms. */
function orderOf(coefs: readonly number[], order?: (i: number, j: number) => number): readonly number[] | null {
  let first = order !== undefined;
  for (let i = 0; !first && i < coefs.length; i++) first = coefs[i]! < 0;
  if (!first) return null;
  const sorted: number[] = [];
  for (let i = 0; i < coefs.length; i++) {
    let at = i;
    for (; at > 0; at--) {
      const before = sorted[at - 1]!;
      const sign = Number(coefs[before]! < 0) - Number(coefs[i]! < 0);
      if (((order === undefined ? 0 : order(before, i)) || sign) <= 0) break;
      sorted[at] = before;
    }
    sorted[at] = i;
  }
  return sorted;
}

function product(e: Factory, term: KNode, k: number): KNode {
  return k === 1 ? term : e.intern('MUL', 'int32', 1, [term, e.i32(k)]);
}

/** a + k * b for int32 scalars. */
export function addScaled(e: Factory, a: KNode, b: KNode, k: number): KNode | null {
  const form = combine(linearOf(a), 1, linearOf(b), k);
  if (form === null) return null;
  return fromLinear(e, form.terms.length > 1 ? recombine(form, (y, c) => e.idiv(y, c)) : form);
}

/** x * k for an int32 scalar. */
export function scaleBy(e: Factory, x: KNode, k: number): KNode {
  return fromLinear(e, scale(linearOf(x), k));
}

/** The greatest common divisor of a number and the coefficients of a form. */
function commonDivisor(first: number, { coefs }: Linear): number {
  let x = first;
  for (let i = 0; i < coefs.length; i++) {
    let y = coefs[i]!;
    while (y !== 0) {
      const rest = x % y;
      x = y;
      y = rest;
    }
  }
  return Math.abs(x);
}

/** x / c or x % c for an int32 scalar and a constant c > 1, where x is known not to be negative. */
export function divideByConstant(e: Factory, op: 'IDIV' | 'IREM', x: KNode, c: number): KNode | null {
  if (lowOf(x) < 0) return null;
  if (highOf(x) < c) return op === 'IDIV' ? e.i32(0) : x;
  const form = linearOf(x);
  if (isExact(form)) {
    const { quotient, rest } = splitByDivisor(form, c);
    const low = formLow(rest);
    const high = formHigh(rest);
    const changed = quotient.terms.length > 0 || quotient.offset !== 0;
    if (low >= 0 && high <= 2147483647 && changed && isExact(quotient)) {
      const r = fromLinear(e, rest);
      if (op === 'IREM') return high < c ? r : e.irem(r, c);
      const q = fromLinear(e, quotient);
      return high < c ? q : e.add(q, e.idiv(r, c));
    }
    const g = commonDivisor(c, form);
    if (g > 1 && form.terms.length > 0) {
      const parts = splitByDivisor(form, g); // rest is the offset modulo g, below g: it never carries
      const y = fromLinear(e, parts.quotient);
      if (lowOf(y) >= 0) {
        if (op === 'IDIV') return e.idiv(y, c / g);
        return e.add(e.mul(e.irem(y, c / g), g), parts.rest.offset);
      }
    }
  }
  return nestedDivision(e, op, x, c);
}

function nestedDivision(e: Factory, op: 'IDIV' | 'IREM', x: KNode, c: number): KNode | null {
  if (x.op !== 'IDIV' && x.op !== 'IREM') return null;
  const [y, by] = x.src;
  const d = literalOf(by) as number | null;
  if (d === null || d === 0 || lowOf(y) < 0) return null;
  if (x.op === 'IDIV') return op === 'IDIV' && d * c <= 2147483647 ? e.idiv(y, d * c) : null;
  if (d % c !== 0) return null;
  return op === 'IREM' ? e.irem(y, c) : e.irem(e.idiv(y, c), d / c);
}

/** a < b for integers with bounds; int32 scalars also compare their linear forms. */
export function lessThan(e: Factory, a: KNode, b: KNode): KNode | null {
  if (highOf(a) < lowOf(b)) return e.bool(true);
  if (lowOf(a) >= highOf(b) && Number.isFinite(lowOf(a))) return e.bool(false);
  if (a === b) return e.bool(false);
  if (a.dtype !== 'int32' || a.lanes !== 1) return null;
  const fa = linearOf(a);
  const fb = linearOf(b);
  if (!isExact(fa) || !isExact(fb)) return null;
  const d = combine(fa, 1, fb, -1);
  if (d === null) return null;
  const low = formLow(d);
  const high = formHigh(d);
  if (low < -2147483648 || high > 2147483647) return null;
  if (high < 0) return e.bool(true);
  if (low >= 0) return e.bool(false);
  return compareToZero(e, d);
}

/** sum(coefs * terms) + offset < 0 as a comparison with the constant on one side and coefficients divided by their gcd. */
function compareToZero(e: Factory, d: Linear): KNode | null {
  const g = commonDivisor(0, d);
  // sum < -offset  <=>  sum / g < ceil(-offset / g)
  const bound = Math.ceil(-d.offset / g) + 0;
  if (Math.abs(bound) > 2147483647) return null;
  const positive = selectTerms(d, (c) => c > 0, g, 0);
  const negative = selectTerms(d, (c) => c < 0, -g, 0);
  if (!isExact(positive) || !isExact(negative)) return null;
  const p = fromLinear(e, positive);
  const n = fromLinear(e, negative);
  if (negative.terms.length === 0) return e.intern('LT', 'bool', 1, [p, e.i32(bound)]);
  if (positive.terms.length === 0) return e.intern('LT', 'bool', 1, [e.i32(-bound), n]);
  if (bound === 0) return e.intern('LT', 'bool', 1, [p, n]);
  const moved = { ...negative, offset: bound };
  return isExact(moved) ? e.intern('LT', 'bool', 1, [p, fromLinear(e, moved)]) : null;
}

function isExact(f: Linear): boolean {
  return formLow(f) >= -2147483648 && formHigh(f) <= 2147483647;
}

/** a == b for integers, by bounds and by the difference of linear forms. */
export function equal(e: Factory, a: KNode, b: KNode): KNode | null {
  if (a === b) return e.bool(true);
  if (highOf(a) < lowOf(b) || highOf(b) < lowOf(a)) return e.bool(false);
  if (a.dtype !== 'int32' || a.lanes !== 1) return null;
  const fa = linearOf(a);
  const fb = linearOf(b);
  if (!isExact(fa) || !isExact(fb)) return null;
  const d = combine(fa, 1, fb, -1);
  if (d === null) return null;
  if (d.terms.length === 0) return e.bool(d.offset === 0);
  const low = formLow(d);
  const high = formHigh(d);
  // The difference wraps: where it may reach 2^32, both may be equal without its being 0.
  if (low <= -(2 ** 32) || high >= 2 ** 32) return null;
  return d.offset % commonDivisor(0, d) !== 0 || low > 0 || high < 0 ? e.bool(false) : null;
}

const commutative: ReadonlySet<string> = new Set(['ADD', 'MUL', 'MAX', 'MIN', 'AND', 'OR', 'XOR', 'EQ', 'MULHI']);

/** True if operands of an operation on integers may be exchanged: constants go right, otherwise older nodes go left. */
export function mustSwap(op: BinaryOp, a: KNode, b: KNode): boolean {
  const ordered = b.op === 'CONST' || (a.op !== 'CONST' && idOf(a) <= idOf(b));
  return !ordered && commutative.has(op);
}
