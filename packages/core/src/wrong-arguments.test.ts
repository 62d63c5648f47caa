/**
 * Every public function with one argument of a wrong kind: it works, or refuses it with an error of this library that names the function.
 *
 * Right calls are those of the functions' own examples. What a function of the user's throws is the user's.
 */
import { beforeAll, expect, it, vi } from 'vitest';
import {
  callable,
  createReferenceEngine,
  hostileArguments,
  HostileError,
  noting,
  optionsAt,
  refusalComplaint,
  type RightCall,
  rightCalls,
  strangeOptions,
  wrongCalls,
} from '@polygrad/testing';
import { usualLimits } from './graph/state.ts';
import * as pg from './index.ts';
import * as numbers from '@polygrad/numbers';

type Call = (...args: unknown[]) => unknown;
const exported: Readonly<Record<string, unknown>> = { ...pg, ...numbers };

let calls = new Map<string, RightCall>();

beforeAll(async () => {
  await pg.setEngine(createReferenceEngine());
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
  calls = await rightCalls(exported);
  pg.setEager(false);
});

/** Errors thrown by functions of the user's, which are the user's. */
const users = new Set<unknown>();
const guarded = (value: unknown): unknown => noting(value, users);

/** What is wrong with the way in which a call was refused; null if nothing is. */
function complaint(name: string, error: unknown, text: string = ''): string | null {
  const { message } = error as Error;
  // So is what an object of the user's throws when its properties are read, and a class that is called.
  const theirs = error instanceof HostileError ? text.includes('a proxy') : /revoked|Class constructor/.test(message);
  return users.has(error) || theirs ? null : refusalComplaint(name, error);
}

it('each function has a right call, in its example', () => {
  // It takes as long as its budget says.
  expect(callable(exported).filter((name) => !calls.has(name))).toEqual(['tune']);
});

/** Calls each of the functions with every wrong value in every place; returns what is wrong with refusals, and how many calls there were. */
async function complaintsOf(
  names: readonly string[],
  dead: unknown,
  limits: Parameters<typeof pg.setPendingLimits>[0],
  values?: ReturnType<typeof hostileArguments>,
): Promise<[complaints: string[], tried: number]> {
  const complaints = new Set<string>();
  let tried = 0;
  for (const name of names) {
    pg.setPendingLimits(limits);
    const f = exported[name] as Call;
    for await (const [text, changed] of wrongCalls(f, (calls.get(name)?.args ?? []).map(guarded), dead, values)) {
      tried++;
      try {
        const results: unknown = await f(...changed);
        if (name !== 'keep') pg.dispose(results);
      } catch (error) {
        const wrong = complaint(name, error, text);
        if (wrong !== null) complaints.add(`${name} ${text}: ${wrong}`);
      }
    }
    pg.setEager(false);
    pg.setRecovery({});
    pg.traceOrigins(false);
  }
  pg.setPendingLimits(usualLimits);
  return [[...complaints], tried];
}

it('are refused in the name of the function', async () => {
  const dead = pg.ones([2]);
  dead.dispose();
  const [complaints, tried] = await complaintsOf(callable(exported), dead, {});
  expect(complaints).toEqual([]);
  expect(tried).toBeGreaterThan(5000);
});

it('that are hostile are refused just so, and are not looked at by messages', async () => {
  // A number type's elements may be anything.
  const names = callable(exported).filter((name) => name !== 'defineNumberType');
  // Results may be as large as they like: none is computed.
  const [complaints, tried] = await complaintsOf(names, null, { bytes: 2 ** 60 }, hostileArguments());
  expect(complaints).toEqual([]);
  expect(tried).toBeGreaterThan(5000);
});

it('that are objects of other kinds are no options', async () => {
  const taken: string[] = [];
  for (const name of callable(exported)) {
    const f = exported[name] as Call;
    const args = (calls.get(name)?.args ?? []).map(guarded);
    for (let at = 0; at <= args.length; at++) {
      const padded = at === args.length ? [...args, undefined] : args;
      const names = await optionsAt(f, padded, at);
      if (names.length === 0) continue;
      for (const [text, value] of strangeOptions()) {
        try {
          const results: unknown = await f(...padded.with(at, value));
          taken.push(`${name} #${at}: ${text}`);
          pg.dispose(results);
        } catch (error) {
          const { message } = error as Error;
          if (
            complaint(name, error, text) !== null ||
            !message.includes(
              text === 'an instance' ? 'a Settings' : text === 'a typed array' ? 'a Float32Array' : text,
            )
          )
            taken.push(`${name} #${at} ${text}: ${message}`);
        }
      }
    }
  }
  expect(taken).toEqual([]);
});
