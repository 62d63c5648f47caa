/**
 * Where values must be ROUNDED for engines whose compilers regroup float arithmetic as if it were exact (`caps.keepRounding`).
 *
 * Such compilers (Mesa's and SPIRV-Tools' among them) cancel (x + 1) - 1 and merge constants of sums and of products. They replace x - x by 0 and
 * a b + a c by a (b + c). They drop the rounding of a float that is cast to 16 bits and back. None of their rules looks through a ROUNDED value.
 * So one goes between every two operations that such a rule could join. A REDUCE may combine its values in any order.
 */
import { type DType, isFloat } from '../shape/dtype.ts';
import type { KNode } from '../ir/ir.ts';
import { remake } from '../ir/rewrite.ts';
import type { KeepRounding } from '../ir/target.ts';

/** The operand below a chain of negations. */
function size(n: KNode): KNode {
  let x = n;
  while (x.op === 'NEG') x = x.src[0];
  return x;
}

function isSum(n: KNode): boolean {
  const x = size(n);
  // Compilers unroll short loops, and then see the last sum of a reduction.
  return x.op === 'REDUCE' ? x.arg.op === 'sum' : x.op === 'ADD' || x.op === 'SUB' || x.op === 'MULADD';
}

function isProduct(n: KNode): boolean {
  const x = size(n);
  return x.op === 'REDUCE' ? x.arg.op === 'prod' : x.op === 'MUL' || x.op === 'DIV' || x.op === 'RECIP';
}

/** True if two lists of factors have one in common. */
function share(a: readonly KNode[], b: readonly KNode[]): boolean {
  return a.some((x) => b.some((y) => size(x) === size(y)));
}

/** The factors of a product; none for other values. */
function factors(n: KNode): readonly KNode[] {
  const x = size(n);
  return x.op === 'MUL' ? x.src : [];
}

/** True for x - x and x + -x, which are NaN if x is NaN or infinite. */
function cancels({ op }: KNode, a: KNode, b: KNode): boolean {
  return size(a) === size(b) && (op === 'SUB') === ((a.op === 'NEG') === (b.op === 'NEG'));
}

/** True for a 16-bit float that was rounded, or moved, in this kernel. A value just loaded was rounded elsewhere. */
const isNarrowed = (n: KNode): boolean =>
  (n.dtype === 'float16' || n.dtype === 'bfloat16') && n.op !== 'LOAD' && n.op !== 'CONST' && n.op !== 'ROUNDED';

const isZero = (n: KNode): boolean => n.op === 'CONST' && n.arg.value === 0;

/**
 * The node with ROUNDED around each source that a regrouping compiler could join with it. `n` is one node of an expression whose
 * sources are done.
 *
 * @example
 * const e = new Exprs();
 * const x = e.scalar(0, 'float32');
 * const back = e.binary('SUB', e.add(x, 1), e.constant('float32', 1));
 * keepRounding(e, back).src[0]?.op; // 'ROUNDED'
 * keepRounding(e, e.add(x, 1)) === e.add(x, 1); // true
 */
export const keepRounding: KeepRounding = (e, n) => {
  const [a, b, c] = n.src;
  if (a === undefined || !isFloat(a.dtype as DType)) return n;
  const hold = (x: KNode): KNode => e.unary('ROUNDED', x);
  const sums = (x: KNode): KNode => (isSum(x) ? hold(x) : x);
  const products = (x: KNode): KNode => (isProduct(x) ? hold(x) : x);
  switch (n.op) {
    case 'ADD':
    case 'SUB':
      return e.binary(n.op, sums(a), cancels(n, a, b) || share(factors(a), factors(b)) ? hold(b) : sums(b));
    case 'MULADD':
      return e.ternary(n.op, products(a), products(b), share([a, b], factors(c)) ? hold(c) : sums(c));
    case 'MUL':
      if (isZero(a) || isZero(b)) return isZero(a) ? e.mul(hold(a), b) : e.mul(a, hold(b));
      return e.mul(products(a), products(b));
    case 'DIV':
      return e.binary(n.op, products(a), a === b ? hold(b) : products(b));
    case 'LT':
    case 'LE':
    case 'EQ':
      return e.binary(n.op, sums(a), sums(b));
    case 'CAST':
      return isNarrowed(a) ? e.cast(hold(a), n.dtype as DType) : n;
    case 'REDUCE':
      // The element is added to the running sum as one value.
      if (n.arg.op === 'sum') return remake(e, n, [sums(a), ...n.src.slice(1)]);
      return n.arg.op === 'prod' ? remake(e, n, [products(a), ...n.src.slice(1)]) : n;
    default:
      return n;
  }
};
