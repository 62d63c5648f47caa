/**
 * Integer comparisons that are computed where they are used: the condition flags answer there, and no bool is needed. That holds if all users are
 * selects between integers or branches.
 */
import { type KNode, operandsOf, type Program, type RareSide, type Uses } from '@polygrad/core/kernel';
import { isFloat, kindOf } from '../target.ts';

export function isComparison(n: KNode): boolean {
  return n.op === 'LT' || n.op === 'LE' || n.op === 'EQ';
}

/** A candidate during the walk through a program. */
interface Candidate {
  readonly at: number;
  /** Selects and branches seen so far that use it. */
  askers: number;
  /** True if an operand, a counter or register, may have changed by the time of a use. */
  changes: boolean;
}

/** A range that is computed elsewhere than at its position. */
interface Rare {
  readonly sides: ReadonlyMap<KNode, RareSide>;
  readonly inside: ReadonlySet<KNode>;
}

export class Comparisons {
  readonly #later = new Map<KNode, Candidate>();

  constructor({ body }: Program, uses: Uses, rare: Rare) {
    /** Where a block began or ended last, and where registers were written last. */
    let border = -1;
    const written = new Map<KNode, number>();
    for (let i = 0; i < body.length; i++) {
      const n = body[i]!;
      const { op } = n;
      if (op === 'STORE' || op === 'IF' || op === 'WHERE') {
        if (n.op === 'STORE' && n.src[0].op === 'REG') written.set(n.src[0], i);
        // What asks for a bool that it can do without.
        const condition = op === 'STORE' ? n.src[3] : n.src[0];
        if (condition !== undefined) this.#ask(n, condition, border, written, rare);
      }
      if (op === 'IF' || op === 'LOOP' || op === 'ENDIF' || op === 'ENDLOOP') border = i;
      if (n.dtype === 'bool' && n.lanes === 1 && isComparison(n) && uses.has(n) && comparesIntegers(n))
        this.#later.set(n, { at: i, askers: 0, changes: rare.inside.has(n) });
    }
    for (const [n, { askers }] of this.#later) if (askers !== uses.get(n)!.count) this.#later.delete(n);
  }

  #ask(n: KNode, condition: KNode, border: number, written: ReadonlyMap<KNode, number>, rare: Rare): void {
    const found = this.#later.get(condition);
    if (found === undefined) return;
    if (n.op === 'WHERE') {
      if (n.lanes !== 1 || isFloat(kindOf(n.dtype)) || rare.sides.has(n)) return;
      if (n.src[1] === condition || n.src[2] === condition) return;
    }
    found.askers++;
    found.changes ||=
      border > found.at ||
      rare.inside.has(n) ||
      condition.src.some((s) => s.op === 'LOAD' && s.src[0].op === 'REG' && (written.get(s.src[0]) ?? -1) > found.at);
  }

  /** True for a comparison that is left to its users; `mayChange`: operands with another value at another time. */
  isLater(n: KNode, mayChange: (operand: KNode) => boolean): boolean {
    const found = this.#later.get(n);
    return found !== undefined && !(found.changes && n.src.some((s) => s.op !== 'CONST' && mayChange(s)));
  }
}

function comparesIntegers(n: KNode): boolean {
  const kind = kindOf(operandsOf(n)[0]!.dtype);
  return !isFloat(kind) && kind !== 'bool';
}
