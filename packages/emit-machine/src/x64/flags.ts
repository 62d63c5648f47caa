/** Tracks what the flags of x86-64 hold, so that nothing is compared twice. It does not follow jumps: at a label nothing is known. */
import type { Place } from '../form/code.ts';
import { type Row, rowOf, rows } from './rows.ts';

const keepers = /^(mov|movzx|movsx|movsxd|lea|cmov[a-z]+|set[a-z]+|push|pop|[kv][a-z0-9]+)$/;
const setters = /^(k(or)?test|vp?test[ps]?[sd]?$|vu?comis)/;

/** Instructions that leave the flags unchanged. */
const keeping: ReadonlySet<Row> = new Set(
  [...rows.values()].filter(({ name }) => keepers.test(name) && !setters.test(name)),
);
const comparing: ReadonlySet<Row> = new Set(['cmp', 'cmp:constant', 'test', 'test:constant'].map(rowOf));
/** Instructions that set the flags as a test of their result would. */
const testing: ReadonlySet<Row> = new Set(
  ['and', 'or', 'xor'].flatMap((name) => [rowOf(name), rowOf(`${name}:constant`)]),
);
const test = rowOf('test');

export class Flags {
  #row: Row | null = null;
  #size = 0;
  #places: readonly Place[] = [];

  /** Nothing is known any more. */
  forget(): void {
    this.#row = null;
  }

  /** Passes an instruction; true if it only sets the flags to what they are already. */
  pass(row: Row, size: number, places: readonly Place[]): boolean {
    if (keeping.has(row)) {
      if (this.#row !== null && this.#changes(row, places)) this.#row = null;
      return false;
    }
    if (comparing.has(row)) {
      if (row === this.#row && size === this.#size && places.every((p, i) => p === this.#places[i])) return true;
      this.#hold(row, size, places);
    } else if (testing.has(row)) this.#hold(test, size, [places[0]!, places[0]!]);
    else this.#row = null;
    return false;
  }

  /** Notes a comparison of registers; memory may change unseen. */
  #hold(row: Row, size: number, places: readonly Place[]): void {
    this.#row = places.every((p) => typeof p === 'number') ? row : null;
    this.#size = size;
    this.#places = places;
  }

  /** True if an instruction writes a register that was compared. */
  #changes({ operands }: Row, places: readonly Place[]): boolean {
    const compared = this.#row!.operands;
    for (let i = 0; i < operands.length; i++) {
      const { writes, cls } = operands[i]!;
      if (!writes || cls !== 'g') continue;
      for (let at = 0; at < compared.length; at++)
        if (compared[at]!.cls === 'g' && this.#places[at] === places[i]) return true;
    }
    return false;
  }
}
