/**
 * Products that a library of the device may compute: found among contractions, with their dispatches.
 *
 * There are two forms, products of matrices (matrices.ts) and convolutions (convolutions.ts); a contraction may be of both. Products of 16-bit
 * floats are summed in float32, and kept in either dtype. Stores that do more than keep the sum become a second dispatch.
 */
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { Count, KNode, KNodeOf, Product } from '../../ir/ir.ts';
import { nodesOf } from '../../ir/node.ts';
import { type DType, isSmallFloat } from '../../shape/dtype.ts';
import { Assembly } from '../assembly.ts';
import type { Contraction } from '../contraction.ts';
import { workspaceFor } from '../workspace.ts';
import { convolutionOf } from './convolutions.ts';
import { Counts, productAt } from './counts.ts';
import { matricesOf } from './matrices.ts';
import type { Factors, LibraryProduct, OwnStore, ProductForm } from './forms.ts';

export type { LibraryProduct } from './forms.ts';

/** Products among contractions, and their dispatches. */
export interface LibraryPrograms {
  /** The contraction as products, the simplest form first. */
  find(c: Contraction): readonly LibraryProduct[];
  lower(c: Contraction, e: Exprs, caps: CodegenCaps, found: LibraryProduct): Lowered;
  /** The product with its numbers, where the program's scalars have these values. */
  at(product: Product<Count>, scalars: readonly (number | bigint)[]): Product;
}

function productsOf(c: Contraction): LibraryProduct[] {
  const factors = c.factors.map(({ value }) => stored(value)) as [KNode, KNode];
  const { dtype } = factors[0];
  if (dtype === 'void' || dtype !== factors[1].dtype) return [];
  const counts = new Counts();
  const own = ownStore(c, dtype, counts);
  const known: Factors = { counts, stored: factors, dtype, own, apart: roundedSums(c, dtype) ?? c.reduce };
  const found = [matricesOf(c, known), convolutionOf(c, known)].filter((one) => one !== null);
  return found.map((one) => ({ ...one, details: detailsOf(one) }));
}

/** A factor as memory holds it: sums of 16-bit floats read it through a cast to float32. */
function stored(value: KNode): KNode {
  const isWidened = value.op === 'CAST' && value.dtype === 'float32' && isSmallFloat(value.src[0].dtype as DType);
  return isWidened ? value.src[0] : value;
}

/** The only store, if it keeps the sum unchanged, or rounded to the factors' 16 bits. */
function ownStore(c: Contraction, factors: DType, counts: Counts): OwnStore | null {
  const [only, ...more] = c.kernel.stores;
  if (only === undefined || more.length > 0) return null;
  const [memory, index, value, gate] = only.store.src as readonly KNode[];
  const isRounded =
    value?.op === 'CAST' && value.src[0] === c.reduce && value.dtype === factors && isSmallFloat(factors);
  if ((value !== c.reduce && !isRounded) || gate !== undefined) return null;
  if (memory?.op !== 'PARAM' || memory.dtype !== value?.dtype) return null;
  if (memory.arg.access !== 'write') return null;
  const access = counts.accessOf(memory, index!);
  return access === null ? null : { access, dtype: memory.dtype };
}

/** The sums rounded to the factors' 16 bits, if nothing but that is made of them. */
function roundedSums(c: Contraction, factors: DType): KNode | null {
  if (!isSmallFloat(factors)) return null;
  let rounded: KNode | null = null;
  const outside = nodesOf(
    c.kernel.stores.map(({ store }) => store),
    (n) => (n === c.reduce ? [] : n.src),
  );
  for (const n of outside) {
    if (n === c.reduce || !n.src.includes(c.reduce)) continue;
    if (n.op !== 'CAST' || n.dtype !== factors || (rounded !== null && rounded !== n)) return null;
    rounded = n;
  }
  return rounded;
}

/** The dispatches: a plain program that says which product it is, and the kernel's epilogue. */
function lowerForLibrary(
  c: Contraction,
  e: Exprs,
  caps: CodegenCaps,
  { product, direct, order }: LibraryProduct,
): Lowered {
  const assembly = new Assembly(c.kernel, e, caps);
  if (direct) {
    assembly.add('', c.kernel.stores, null, (slotOf) => placed(product, slotOf));
    return assembly.result();
  }
  const sums = product.result === product.dtype ? roundedSums(c, product.dtype) : null;
  const memory = workspaceFor(c, e, assembly, order, null, sums ?? c.reduce);
  const { slot } = (memory.store.store.src[0] as KNodeOf<'PARAM'>).arg;
  assembly.add('', [memory.store], null, (slotOf) => placed(product, (own) => slotOf(own < 0 ? slot : own)));
  memory.finish();
  return assembly.result();
}

/** The product with its operands at other slots. */
function placed(product: Product<Count>, slotOf: (slot: number) => number): Product<Count> {
  const at = <T extends { readonly slot: number }>(operand: T): T => ({ ...operand, slot: slotOf(operand.slot) });
  const { a, b, c } = product;
  return { ...product, a: at(a), b: at(b), c: at(c) } as Product<Count>;
}

/** What else the speed of a product hangs on, which classes of contractions do not tell. */
function detailsOf({ product, direct }: ProductForm): string {
  const through = direct ? '' : '+';
  if (product.kind === 'matrices') return through;
  const { pass, kernel, stride, padding, dilation, groups, flipped } = product;
  const pairs = [kernel, stride, padding, dilation].map((pair) => pair.join('x')).join('-');
  return `${through} ${pass}${flipped ? '~' : ''}:${pairs}/${groups}`;
}

export const libraryPrograms: LibraryPrograms = { find: productsOf, lower: lowerForLibrary, at: productAt };
