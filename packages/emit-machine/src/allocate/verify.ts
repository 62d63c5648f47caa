/**
 * Replays assigned instructions and checks that every read finds the intended value: no live value is overwritten, on any path
 * through the code. Independent of how registers were assigned.
 */
import type { Assigned, FinalItem, Held, Label } from '../form/code.ts';

type State = Map<string, ReadonlySet<number>>;

const keyOf = ({ cls, number }: Held): string => `${cls}${number}`;

/** What two states at a join agree on. */
function meet(a: State, b: State): State {
  const out: State = new Map();
  for (const [key, ids] of a) {
    const other = b.get(key);
    const both = other === undefined ? [] : [...ids].filter((id) => other.has(id));
    if (both.length > 0) out.set(key, new Set(both));
  }
  return out;
}

function equal(a: State, b: State): boolean {
  if (a.size !== b.size) return false;
  for (const [key, ids] of a) if (b.get(key)?.size !== ids.size) return false;
  return true;
}

/** The first error, or null. `uninitialised`: registers that may be read before they are written. */
export function verifyAssigned(
  { items }: Assigned,
  uninitialised: (id: number) => boolean = () => false,
): string | null {
  const known = new Map<Label, State>();
  for (;;) {
    const problem = replay(items, known, uninitialised);
    if (problem.changed) continue;
    return problem.text;
  }
}

function replay(
  items: readonly FinalItem[],
  known: Map<Label, State>,
  uninitialised: (id: number) => boolean,
): { readonly changed: boolean; readonly text: string | null } {
  let state: State = new Map();
  let changed = false;
  let text: string | null = null;
  const arrive = (label: Label, from: State): void => {
    const old = known.get(label);
    const next = old === undefined ? new Map(from) : meet(old, from);
    if (old !== undefined && equal(old, next)) return;
    changed = true;
    known.set(label, next);
  };
  items.forEach((item, at) => {
    switch (item.kind) {
      case 'label':
        arrive(item.label, state);
        state = new Map(known.get(item.label)!);
        break;
      case 'jump':
        arrive(item.label, state);
        break;
      case 'fault':
        break;
      case 'same': {
        const ids = state.get(keyOf(item.from));
        if (ids?.has(item.from.reg.id)) state.set(keyOf(item.to), new Set([...ids, item.to.reg.id]));
        else if (!uninitialised(item.from.reg.id))
          text ??= `item ${at}: ${keyOf(item.from)} does not hold ${item.from.reg.id}`;
        break;
      }
      case 'ins': {
        for (const read of item.reads) {
          if (state.get(keyOf(read))?.has(read.reg.id) || uninitialised(read.reg.id)) continue;
          text ??= `item ${at}, ${item.row.name}: ${keyOf(read)} does not hold ${read.reg.id}`;
        }
        for (const number of item.spoils) state.delete(`g${number}`);
        for (const write of item.writes) state.set(keyOf(write), new Set([write.reg.id]));
        break;
      }
      default:
        item satisfies never;
    }
  });
  return { changed, text };
}
