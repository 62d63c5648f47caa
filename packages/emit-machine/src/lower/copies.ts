/**
 * Counters of unrolled loops: a body that is unrolled is lowered several times, each time with another number added to the counter, or in place
 * of it.
 *
 * Core decides how often a body is written (`unrollFactor`); program.ts writes it.
 */
import type { KNode } from '@polygrad/core/kernel';
import type { Block, Reg } from '../form/code.ts';

/** One copy of a loop's body: its counter is `base + by`, computed in a block; without a base if no loop remains. */
export interface Copy {
  readonly block: Block;
  readonly base: Reg | null;
  readonly by: number;
}

/** A sum of nodes with factors and a constant. */
export interface Linear {
  readonly terms: readonly KNode[];
  readonly coefs: readonly number[];
  readonly offset: number;
}

/** The current copies, by counter. */
export class Copies extends Map<KNode, Copy> {
  /** A sum including what copies add to their counters. */
  unshifted(form: Linear): Linear {
    if (this.size === 0 || !form.terms.some((t) => this.has(t))) return form;
    const terms: KNode[] = [];
    const coefs: number[] = [];
    let { offset } = form;
    for (const [i, t] of form.terms.entries()) {
      const copy = this.get(t);
      const coef = form.coefs[i]!;
      if (copy !== undefined) offset += coef * copy.by;
      if (copy?.base === null) continue;
      terms.push(t);
      coefs.push(coef);
    }
    return { terms, coefs, offset };
  }
}
