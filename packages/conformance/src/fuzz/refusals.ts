/**
 * Calls of a random program with one argument changed to something that may be wrong. Each is either computed or refused at the call, in
 * the words of the library, and leaves nothing behind either way.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { alive, aliveHere } from './check.ts';
import type { Choices } from './choices.ts';
import { call, type Handles, record } from './execute.ts';
import { type Arg, type CallStep, type Program, printProgram, Ref } from './program.ts';

/** A call with one argument replaced, and its text. */
export interface Mutated {
  readonly op: string;
  readonly args: readonly unknown[];
  readonly text: string;
}

const odd: readonly unknown[] = [
  -1,
  99,
  1.5,
  Number.NaN,
  0,
  undefined,
  null,
  'x',
  -99,
  true,
  {},
  [],
  [[1]],
  [0, 0],
  [1.5],
  Number.POSITIVE_INFINITY,
  2,
  [-1],
  3n,
  ['a'],
  { axis: 9 },
  2 ** 31,
  [null],
  [undefined],
];
const words = ['same', 'valid', 'nhwc', 'linear', 'sum', 'none', 'float64', 'int8', 'bool', 'reflect', 'mean'];

const show = (x: unknown): string =>
  x instanceof Ref
    ? `t${x.id}`
    : typeof x === 'bigint'
      ? `${x}n`
      : Array.isArray(x)
        ? `[${x.map(show).join(', ')}]`
        : typeof x === 'object' && x !== null
          ? `{ ${Object.entries(x)
              .map(([k, v]) => `${k}: ${show(v)}`)
              .join(', ')} }`
          : typeof x === 'string'
            ? `'${x}'`
            : String(x);

/** The argument with a part of it replaced. */
function changed(arg: unknown, c: Choices, values: readonly number[]): unknown {
  const into = c.nat(3) > 0;
  if (into && Array.isArray(arg) && arg.length > 0) {
    const at = c.nat(arg.length);
    if (c.seldom(5)) return [...arg, c.pick(odd)];
    if (c.seldom(5)) return arg.slice(1);
    return arg.map((x, i) => (i === at ? changed(x, c, values) : x));
  }
  if (into && typeof arg === 'object' && arg !== null && !(arg instanceof Ref) && !Array.isArray(arg)) {
    const keys = Object.keys(arg);
    const key = c.pick(keys);
    if (key !== undefined) return { ...arg, [key]: changed((arg as Record<string, unknown>)[key], c, values) };
  }
  if (arg instanceof Ref && c.nat(3) > 0) return new Ref(c.pick(values));
  if (typeof arg === 'string' && c.nat(2) > 0) return c.pick(words);
  if (typeof arg === 'number' && c.nat(2) > 0) return arg + c.pick([1, -1, 2, -2, 0.5]);
  // No operation takes null in the place of options (core/src/ops/wrong-kinds.test.ts).
  const options = typeof arg === 'object' && arg !== null && !(arg instanceof Ref) && !Array.isArray(arg);
  return c.pick(options ? odd.filter((x) => x !== null) : odd);
}

/** One of the program's calls with something else in one of its arguments; null if it has none. */
export function mutate(program: Program, c: Choices): { call: Mutated; upTo: number } | null {
  const calls = program.steps.flatMap((s, i) => (s.kind === 'call' ? [{ step: s as CallStep, i }] : []));
  if (calls.length === 0) return null;
  const { step, i } = c.pick(calls);
  const values = program.steps.slice(0, i).flatMap((s) => (s.kind === 'assign' ? [] : 'id' in s ? [s.id] : []));
  const assigned = new Set(program.steps.slice(0, i).flatMap((s) => (s.kind === 'assign' ? [s.target] : [])));
  const there = values.filter((id) => !assigned.has(id));
  const at = c.nat(step.args.length + 1);
  const args: unknown[] =
    at === step.args.length
      ? [...step.args, c.pick(odd.filter((x) => x !== null))]
      : step.args.map((a, k) => (k === at ? changed(a, c, there) : a));
  return { call: { op: step.op, args, text: `pg.${step.op}(${args.map(show).join(', ')});` }, upTo: i };
}

const collected = (result: unknown): Tensor[] =>
  Array.isArray(result) ? result.flatMap(collected) : pg.isTensor(result) ? [result as Tensor] : [];

/** Throws unless the changed call is computed, or refused as it should be. True if it was refused. */
export async function checkRefusal(program: Program, c: Choices): Promise<boolean> {
  const mutated = mutate(program, c);
  if (mutated === null) return false;
  const handles: Handles = new Map();
  const explain = (what: string): Error =>
    new Error(
      `${what}\n${printProgram({ steps: program.steps.slice(0, mutated.upTo), outputs: [], scoped: false })}${mutated.call.text}`,
    );
  const start = alive();
  let refused = false;
  try {
    for (const step of program.steps.slice(0, mutated.upTo)) record(step, handles);
    pg.flush();
    await pg.idle();
    const before = aliveHere();
    try {
      const result = await call(mutated.call.op, mutated.call.args as readonly Arg[], handles);
      const tensors = collected(result).filter((t) => ![...handles.values()].includes(t));
      try {
        for (const t of tensors) if (t.size < 1e6) await t.data();
      } finally {
        for (const t of tensors) t.dispose();
      }
    } catch (error) {
      refused = true;
      const good = error instanceof pg.PolygradError;
      if (!good) throw explain(`not an error of the library: ${(error as Error)?.stack ?? error}`);
      const { message } = error as Error;
      if (!/^\[[a-zA-Z0-9.]+\] \S/.test(message)) throw explain(`the message has another form: ${message}`);
      if (error instanceof pg.OperationError && error.op !== mutated.call.op)
        throw explain(`the message names another operation: ${message}`);
    }
    pg.flush();
    await pg.idle();
    if (aliveHere() !== before) throw explain(`${aliveHere()} where ${before} were before the call`);
  } finally {
    for (const t of handles.values()) t.dispose();
    pg.flush();
    await pg.idle();
  }
  if (alive() !== start) throw explain(`${alive()} where ${start} were at the start`);
  return refused;
}
