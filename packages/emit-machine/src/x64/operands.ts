/** Loads as operands in memory of the instructions that read them, with AVX-512: one element for all lanes of a multiply-add. */
import { type Arg, type Ins, isMemory } from '../form/code.ts';
import type { Folds } from '../form/machine.ts';
import { type Row, rowOf } from './rows.ts';

/** Forms of multiply-adds with an element in memory, by the form without, and by the operand that the element is. */
const spreads = new Map<Row, { readonly load: Row; readonly second: Row; readonly last: Row }>();
for (const [suffix, load] of [
  ['ps', 'vbroadcastss'],
  ['pd', 'vbroadcastsd'],
] as const) {
  const spread = (form: string): Row => rowOf(`vfmadd${form}${suffix}:spread`);
  // The two factors change places, or the addend and a factor do.
  const made = { load: rowOf(load), second: spread('231'), last: spread('231') };
  spreads.set(rowOf(`vfmadd231${suffix}`), made);
  spreads.set(rowOf(`vfmadd213${suffix}`), { load: made.load, second: spread('132'), last: spread('213') });
}

/** The instruction with what a load gives as its operand in memory, or null if there is no such instruction. */
function folded(load: Ins, user: Ins): Ins | null {
  const forms = spreads.get(user.row as Row);
  if (forms === undefined || load.row !== forms.load || load.size !== user.size) return null;
  const [to, from] = load.args as [Arg, Arg];
  const [first, second, last] = user.args as [Arg, Arg, Arg];
  if (!isMemory(from) || first === to) return null;
  const row = last === to ? forms.last : second === to ? forms.second : null;
  return row === null ? null : { ...user, row, args: [first, last === to ? second : last, from] };
}

export const folds: Folds = { loads: new Set([...spreads.values()].map(({ load }) => load)), folded };
