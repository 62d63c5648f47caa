/** A right call of every public function, with its tensors as data: what changed calls are made of, in tests and in random ones. Node only. */
import { dispose } from '@polygrad/core/functions';
import { type Called, restore } from './call-outcomes.ts';
import { type Change, changedCalls, hostCall } from './changed-calls.ts';
import { callable, type Exported, type RightCall, rightCalls, withEngines } from './right-calls.ts';
import { optionsAt } from './wrong-arguments.ts';

/** A function of the library that can be called rightly. */
export interface CallEntry {
  readonly name: string;
  readonly f: Called;
  readonly right: RightCall;
  /** Names of the options that it takes at a place. */
  readonly namesAt: (at: number) => readonly string[];
  /** Calls made of the right one, as `changedCalls` makes them. */
  changed(change: Change): readonly RightCall[];
}

/** Right calls of public functions, by name. */
export type CallTable = ReadonlyMap<string, CallEntry>;

/** Public functions of which no right call is made, and why. */
export const uncalled: Readonly<Record<string, string>> = {
  ...withEngines,
  tune: 'measures kernels on the device, for as long as a budget of time lasts',
};

/** Public functions whose results differ between engines and runs by what they are for, and why: they are called and not compared. */
export const untold: Readonly<Record<string, string>> = {
  getEngine: 'gives the engine itself',
  memory: 'counts what everybody holds',
  profile: 'measures with a clock',
  stats: 'counts what everybody has run',
  printGraph: 'numbers the buffers of the engine',
  gradCheck: 'tells roundings of float64 in its refusals',
};

/**
 * Runs the examples on the current engine, without what they print, and makes the table. `exported`: the names of `@polygrad/core`.
 *
 * @example no-run: runs all examples of the library, which takes seconds
 * import * as pg from '@polygrad/core';
 * import { callTable } from '@polygrad/testing';
 * const table = await callTable({ ...pg });
 * table.get('add')?.changed('odd').length;
 */
export async function callTable(exported: Exported): Promise<CallTable> {
  const { log } = console;
  console.log = () => undefined;
  let calls: ReadonlyMap<string, RightCall>;
  try {
    calls = await rightCalls(exported);
  } finally {
    console.log = log;
    restore();
  }
  const table = new Map<string, CallEntry>();
  for (const name of callable(exported)) {
    const call = calls.get(name);
    if (call === undefined || Object.hasOwn(uncalled, name)) continue;
    const f = exported[name] as Called;
    // First of all: `dispose` is among the functions.
    const right = await hostCall(call);
    const names: string[][] = [];
    for (let at = 0; at <= call.args.length; at++)
      names.push(await optionsAt(f, at === call.args.length ? [...call.args, undefined] : call.args, at));
    const namesAt = (at: number): readonly string[] => names[at] ?? [];
    const made = new Map<Change, readonly RightCall[]>();
    const changed = (change: Change): readonly RightCall[] => {
      const all = made.get(change) ?? changedCalls(right, change, { namesAt });
      made.set(change, all);
      return all;
    };
    table.set(name, { name, f, right, namesAt, changed });
  }
  for (const { args, next } of calls.values()) dispose([args, next]);
  return table;
}
