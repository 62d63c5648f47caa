/**
 * Numbers of a product that hang on sizes given at dispatch (`Count`). They are read off the expressions of a loop nest and compared for
 * all sizes of a class. They are computed when the sizes are known.
 *
 * They are sums of products of scalars: plain data, which can be written down with a program. What is no such sum has no library.
 */
import { type Range, sizeLimit } from '../../ir/free-ranges.ts';
import type { ConvolutionProduct, Count, KNode, KNodeOf, MatrixOperand, MatrixProduct, Product } from '../../ir/ir.ts';
import { highOf, lowOf } from '../../ir/node.ts';

type Term = readonly [factor: number, ...slots: number[]];

/** Position `offset + sum of strides * ranges` of a tensor. */
export interface SizedAccess {
  readonly memory: KNodeOf<'PARAM'>;
  readonly offset: Count;
  readonly strides: ReadonlyMap<Range, Count>;
}

/** A part of an expression that is being expanded: factors known, and those still to look at. */
interface Part {
  readonly factor: number;
  readonly slots: readonly number[];
  readonly range: Range | null;
  readonly rest: readonly KNode[];
}

/** The counts of one product, and what is known of the sizes they hang on. */
export class Counts {
  /** The least and greatest value of scalars, by slot. */
  readonly #bounds = new Map<number, readonly [low: number, high: number]>();

  /** An int32 expression as a sum of ranges times counts, with what has no range under null; null for one of another form. */
  #expanded(n: KNode): ReadonlyMap<Range | null, Count> | null {
    const terms = new Map<Range | null, Term[]>();
    const open: Part[] = [{ factor: 1, slots: [], range: null, rest: [n] }];
    for (let part = open.pop(); part !== undefined; part = open.pop()) {
      const [first, ...rest] = part.rest;
      if (first === undefined) {
        const known = terms.get(part.range);
        const term = [part.factor, ...[...part.slots].sort((x, y) => x - y)] as const;
        if (known === undefined) terms.set(part.range, [term]);
        else known.push(term);
        continue;
      }
      const { factor } = part;
      const [x, y] = first.src as readonly [KNode, KNode];
      switch (first.op) {
        case 'CONST':
          open.push({ ...part, factor: factor * Number(first.arg.value), rest });
          break;
        case 'SCALAR':
          this.#bounds.set(first.arg.slot, [lowOf(first), highOf(first)]);
          open.push({ ...part, slots: [...part.slots, first.arg.slot], rest });
          break;
        case 'RANGE':
          if (part.range !== null) return null;
          open.push({ ...part, range: first, rest });
          break;
        case 'ADD':
          open.push({ ...part, rest: [x, ...rest] }, { ...part, rest: [y, ...rest] });
          break;
        case 'SUB':
          open.push({ ...part, rest: [x, ...rest] }, { ...part, factor: -factor, rest: [y, ...rest] });
          break;
        case 'NEG':
          open.push({ ...part, factor: -factor, rest: [x, ...rest] });
          break;
        case 'MUL':
          open.push({ ...part, rest: [x, y, ...rest] });
          break;
        default:
          return null;
      }
    }
    return new Map([...terms].map(([range, list]) => [range, summed(list)]));
  }

  /** How often a loop runs; null where that is no count. */
  lengthOf(r: Range): Count | null {
    if (r.src.length === 0) return r.arg.extent;
    const limit = sizeLimit(r);
    return limit === null ? null : (this.#expanded(limit)?.get(null) ?? null);
  }

  /** Where an index into memory goes; null where it goes to no such positions. */
  accessOf(memory: KNode, index: KNode): SizedAccess | null {
    const expanded = this.#expanded(index);
    if (memory.op !== 'PARAM' || expanded === null) return null;
    const strides = new Map(expanded) as Map<Range | null, Count>;
    strides.delete(null);
    return { memory, offset: expanded.get(null) ?? 0, strides: strides as ReadonlyMap<Range, Count> };
  }

  /** True if a count is at least another one, at all sizes. */
  isAtLeast(x: Count, y: Count): boolean {
    const least = termsOf(summed([...termsOf(x), ...termsOf(times(y, -1))])).map(([factor, ...slots]) =>
      slots.reduce((n, slot) => n * this.#bounds.get(slot)![factor > 0 ? 0 : 1], factor),
    );
    return least.reduce((sum, n) => sum + n, 0) >= 0;
  }
}

const termsOf = (x: Count): readonly Term[] => (typeof x === 'number' ? [[x]] : x);

/** The sum of terms: those of the same scalars are one. */
function summed(terms: readonly Term[]): Count {
  const factors = new Map<string, Term>();
  for (const [factor, ...slots] of terms)
    factors.set(slots.join(), [factor + (factors.get(slots.join())?.[0] ?? 0), ...slots]);
  const left = [...factors.values()].filter(([factor]) => factor !== 0);
  return left.every(({ length }) => length === 1) ? (left[0]?.[0] ?? 0) : left;
}

/** The product of two counts. */
export function times(x: Count, y: Count): Count {
  const multiplied = ([f, ...s]: Term, [g, ...t]: Term): Term => [f * g, ...[...s, ...t].sort((a, b) => a - b)];
  return summed(termsOf(x).flatMap((s) => termsOf(y).map((t) => multiplied(s, t))));
}

/** The product with its numbers, where the scalars have these values. */
export function productAt(product: Product<Count>, scalars: readonly (number | bigint)[]): Product {
  const at = (x: Count): number =>
    typeof x === 'number'
      ? x
      : x.reduce((sum, [factor, ...slots]) => sum + slots.reduce((n, slot) => n * Number(scalars[slot]), factor), 0);
  if (product.kind === 'convolution') return { ...product, images: at(product.images) } satisfies ConvolutionProduct;
  const of = (x: MatrixOperand<Count>): MatrixOperand => ({
    ...x,
    offset: at(x.offset),
    stride: at(x.stride),
    distance: at(x.distance),
  });
  const { m, n, k, batch, a, b, c } = product;
  const sizes = { m: at(m), n: at(n), k: at(k), batch: at(batch) };
  return { ...product, ...sizes, a: of(a), b: of(b), c: of(c) } satisfies MatrixProduct;
}
