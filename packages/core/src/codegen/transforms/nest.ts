/**
 * `LoopNest`: some stores, what is to stand for their loops, and a list of what was done to them.
 *
 * Transforms (loops.ts) are functions from nest to nest. Replacements of loops are collected and put into expressions together, once, when
 * somebody asks for the stores: what rewrites and simplifies expressions is most of the time that shaping takes.
 */
import type { Exprs } from '../../ir/expr.ts';
import { type Range, splitNests } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, Transform } from '../../ir/ir.ts';
import { assumeBounds, highOf, lowOf } from '../../ir/node.ts';
import type { NestWork } from '../loops/work.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { step } from './step.ts';

/** What stands for loops. */
export type Changes = ReadonlyMap<Range, Replacement>;

export class LoopNest {
  readonly e: Exprs;
  /** What was done so far, first things first. */
  readonly done: readonly Transform[];
  /** Stores that do not have the changes in them yet, and the changes; null if nothing is to be written anew. */
  base: readonly LoopStore[];
  changes: Changes | null;
  /** What it computes, once somebody asked (codegen/loops/work.ts). */
  work: NestWork | undefined;

  constructor(e: Exprs, base: readonly LoopStore[], done: readonly Transform[] = [], changes: Changes | null = null) {
    this.e = e;
    this.base = base;
    this.done = done;
    this.changes = changes;
  }

  /** The stores with all changes in them. */
  get stores(): readonly LoopStore[] {
    if (this.changes !== null) {
      const rewriter = new Rewriter(this.e, this.changes);
      this.base = this.base.map((s) => rewriter.store(s));
      this.changes = null;
    }
    return this.base;
  }

  /** The loops that stand for one. */
  loopsOf(r: Range): readonly Range[] {
    return this.changes?.get(r)?.ranges ?? [r];
  }

  /** The nest with other stores of the same meaning, which `name` made of these; `changes` are still to be put in. */
  wrote(
    stores: readonly LoopStore[],
    name: string,
    loops: Iterable<Range>,
    args: Transform['args'] = [],
    made: readonly Range[] = [],
    changes: Changes | null = null,
  ): LoopNest {
    return new LoopNest(this.e, stores, [...this.done, step(name, loops, made, args)], changes);
  }

  /** The nest with one node, of which `name` is said, computed in another way. */
  with(from: KNode, to: KNode, name: string, loops: Iterable<Range>): LoopNest {
    const rewriter = new Rewriter(this.e, new Map());
    rewriter.set(from, to);
    return this.wrote(
      this.stores.map((s) => rewriter.store(s)),
      name,
      loops,
    );
  }

  /**
   * The nest with other loops in place of some, which `name` did. Those may be in the stores, or made by a transform before: then they are
   * replaced in what it put there.
   */
  put(put: Changes, name: string, ...args: Transform['args']): LoopNest {
    const changes = new Map(this.changes);
    if ([...changes.values()].some(({ ranges }) => ranges.some((r) => put.has(r)))) {
      const rewriter = new Rewriter(this.e, put);
      for (const [r, { value, ranges }] of changes) {
        const now = rewriter.node(value);
        assumeBounds(now, lowOf(value), highOf(value));
        changes.set(r, { value: now, ranges: rewriter.list(ranges) });
      }
    }
    for (const [r, change] of put) changes.set(r, change);
    const made = [...put.values()].flatMap(({ ranges }) => ranges);
    return this.wrote(this.base, name, put.keys(), args, made, changes);
  }

  /** The stores that share loops, as nests of their own. The first of them keeps the list of what was done. */
  parts(): readonly LoopNest[] {
    return splitNests(this.stores).map((stores, i) => new LoopNest(this.e, stores, i === 0 ? this.done : []));
  }
}

/** A kernel as a policy shapes its nests. */
export function shaped(
  kernel: LoopKernel,
  e: Exprs,
  policy: (nests: readonly LoopNest[]) => readonly LoopNest[],
): LoopKernel {
  const nests = policy(new LoopNest(e, kernel.stores, kernel.transforms).parts());
  return { ...kernel, stores: nests.flatMap((n) => n.stores), transforms: nests.flatMap((n) => n.done) };
}
