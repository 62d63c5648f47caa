/**
 * Loops that end at a size given at dispatch (`sizeLimit`): how long they are for certain, at most, and in which steps.
 *
 * The extent of such a loop is its capacity, the greatest size. Strides, stages and costs go by that; what is read and written ends at
 * the limit.
 */
import type { Exprs } from '../ir/expr.ts';
import { type Range, sizeLimit, sizeOf } from '../ir/free-ranges.ts';
import type { KNode } from '../ir/ir.ts';
import { highOf, lowOf } from '../ir/node.ts';
import { linearOf } from '../ir/simplify/integers.ts';
import { nodesOf } from '../ir/traverse.ts';

/** True unless the end of a loop depends on other loops, as that of a last chunk does. */
export function endsAlone(r: Range): boolean {
  return r.src.length === 0 || sizeLimit(r) !== null;
}

/** The loop ends at a size that is given at dispatch. */
export function isSized(r: Range): boolean {
  return sizeLimit(r) !== null;
}

/** How many iterations a loop has that ends alone. */
export function lengthOf(e: Exprs, r: Range): KNode {
  return sizeLimit(r) ?? e.i32(r.arg.extent);
}

/** Where neighbouring loops as one end, if the first of them ends at a size; the others are of fixed length. */
export function limitOf(e: Exprs, loops: readonly Range[]): KNode | undefined {
  const [first, ...inner] = loops;
  const limit = first === undefined ? null : sizeLimit(first);
  return limit === null ? undefined : e.mul(limit, sizeOf(inner));
}

/** True if a loop that ends alone is always a multiple of `by` iterations. */
export function isMultiple(r: Range, by: number): boolean {
  const limit = sizeLimit(r);
  return r.arg.extent % by === 0 && (limit === null || divisorOf(limit) % by === 0);
}

/** A number that an int32 expression is always a multiple of; 0 for zero. */
export function divisorOf(n: KNode): number {
  if (lowOf(n) === highOf(n)) return Math.abs(lowOf(n));
  if (n.op === 'MIN' || n.op === 'MAX') return greatestDivisor(divisorOf(n.src[0]), divisorOf(n.src[1]));
  const { terms, coefs, offset } = linearOf(n);
  return terms.reduce(
    (all, term, i) => greatestDivisor(all, Math.abs(coefs[i]!) * (term === n ? 1 : divisorOf(term))),
    Math.abs(offset),
  );
}

/** The greatest number that divides both. */
export function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** How many iterations a loop takes. */
export interface Count {
  readonly most: number;
  readonly least: number;
  /** A number that it is always a multiple of. */
  readonly step: number;
}

/** True if where a loop ends depends on a number given at dispatch. */
export function isSizedEnd(limit: KNode): boolean {
  for (const n of nodesOf([limit])) if (n.op === 'SCALAR') return true;
  return false;
}

/** How many iterations a loop takes. Of chunks only those of sizes are looked into: others end early once, in the last chunk. */
export function countOf(r: Range): Count {
  const { extent } = r.arg;
  const [limit] = r.src;
  if (limit === undefined) return { most: extent, least: extent, step: Math.max(1, extent) };
  if (!isSizedEnd(limit)) return { most: extent, least: 0, step: 1 };
  const most = Math.min(extent, highOf(limit));
  return { most, least: Math.max(0, Math.min(most, lowOf(limit))), step: Math.max(1, divisorOf(limit)) };
}
