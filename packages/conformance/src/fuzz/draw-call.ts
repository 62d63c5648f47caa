/** Draws calls with one argument changed: of a random program's calls, and of the right calls of all public functions. */
import { type CallTable, callText, type Change, changedCalls, type RightCall } from '@polygrad/testing';
import type { Choices } from '../programs/choices.ts';
import { type Arg, type Program, Ref, refsOf, type Step, uses } from '../programs/program.ts';

/** A call of a function, and its text. */
export interface DrawnCall {
  readonly name: string;
  readonly call: RightCall;
  readonly text: string;
}

/** A call of which arguments are values of a program. */
export interface ProgramCall extends DrawnCall {
  /** Steps of the program that it needs. */
  readonly steps: readonly Step[];
}

/** Two of three changes are to something of the same kind. */
const changeOf = (c: Choices): Change => (c.nat(3) < 2 ? 'likely' : 'odd');

/** A call of the table with one argument changed, of two of three once more: integers beside 0 are two changes away from a right call. */
export function drawFromTable(table: CallTable, c: Choices): DrawnCall {
  const entry = c.pick([...table.values()]);
  const once = entry.changed(changeOf(c));
  let call = once.length === 0 ? entry.right : c.pick(once);
  if (c.nat(3) > 0) {
    const twice = changedCalls(call, changeOf(c), { namesAt: entry.namesAt });
    if (twice.length > 0) call = c.pick(twice);
  }
  return { name: entry.name, call, text: callText(entry.name, call) };
}

/** Those of the steps that values among the arguments come from. */
function neededBy({ args }: RightCall, steps: readonly Step[]): Step[] {
  const needed = new Set(args.flatMap((arg) => refsOf(arg as Arg)));
  const kept: Step[] = [];
  for (const step of [...steps].reverse()) {
    if (!('id' in step) || !needed.has(step.id)) continue;
    for (const id of uses(step)) needed.add(id);
    kept.push(step);
  }
  return kept.reverse();
}

/** One of the program's calls with one argument changed, a value to another one of the program; null if it has no call. */
export function drawFromProgram(program: Program, table: CallTable, c: Choices): ProgramCall | null {
  const calls = program.steps.flatMap((s, i) => (s.kind === 'call' && s.run === undefined ? [{ step: s, i }] : []));
  if (calls.length === 0) return null;
  const { step, i } = c.pick(calls);
  const before = program.steps.slice(0, i);
  const values = before.flatMap((s) => (s.kind === 'assign' ? [] : 'id' in s ? [s.id] : []));
  const assigned = new Set(before.flatMap((s) => (s.kind === 'assign' ? [s.target] : [])));
  const refs = values.filter((id) => !assigned.has(id)).map((id) => new Ref(id));
  const entry = table.get(step.op);
  const right: RightCall = { args: step.args, next: null };
  const all = changedCalls(right, changeOf(c), {
    namesAt: (at) => entry?.namesAt(at) ?? [],
    others: (value) => (value instanceof Ref ? refs : null),
  });
  const call = all.length === 0 ? right : c.pick(all);
  return { name: step.op, call, text: callText(step.op, call), steps: neededBy(call, before) };
}
