/**
 * What counters of loops mean in copies of their bodies: a body that is written several times is lowered several times, each time with another number
 * added to the counter, or in its place.
 *
 * How often a body is written, core says (`unrollFactor`); program.ts writes it.
 */
import type { KNode } from '@polygrad/core/kernel';
import type { Block, Reg } from '../form/code.ts';

/** One copy of the body of a loop: its counter is `base + by`, made in a block; no base where no loop remains. */
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

/** The running copies, by their counters. */
export class Copies extends Map<KNode, Copy> {
  /** A sum with what copies add to their counters. */
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
