/**
 * Every public function with one argument of a wrong kind: it works, or refuses it with an error of this library that names the function.
 *
 * Right calls are those of the functions' own examples. What a function of the user's throws is the user's.
 */
import { beforeAll, expect, it, vi } from 'vitest';
import { examplesOf, runExample, sourcesIn, withoutTypes } from './fixtures/doc-examples.ts';
import * as pg from './index.ts';
import { createReferenceEngine } from './testing/index.ts';
import { wrongCalls } from './testing/wrong-arguments.ts';

type Call = (...args: unknown[]) => unknown;
const exported: Readonly<Record<string, unknown>> = { ...pg };
const isCall = (name: string): boolean => typeof exported[name] === 'function' && /^[a-z]/.test(name);

/** Helpers for messages and extensions: the first takes the name to use, the second has none. */
const without = new Set(['checkWeak', 'floatFor', 'promoteTypes']);
/** They make or take engines, which are not there. */
const engines = new Set(['setEngine', 'registerBackend', 'getBackend', 'cpuEngine']);
const calls = new Map<string, unknown[]>();

const kept = (value: unknown): unknown =>
  pg.isTensor(value) ? pg.keep(value.detach()) : Array.isArray(value) ? value.map(kept) : value;

beforeAll(async () => {
  await pg.setEngine(createReferenceEngine());
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const noted = Object.fromEntries(
    Object.entries(exported).map(([name, value]) => [
      name,
      isCall(name)
        ? (...args: unknown[]) => {
            if (!calls.has(name)) calls.set(name, args.map(kept));
            return (value as Call)(...args);
          }
        : value,
    ]),
  );
  for (const file of sourcesIn(['ops', 'autodiff', 'tensor', 'graph', 'numbers', 'schedule', 'engine']))
    for (const { name, lines } of examplesOf(file))
      if (!engines.has(name) && !name.endsWith('Error')) await runExample(lines.map(withoutTypes).join('\n'), noted);
  pg.setEager(false);
});

it('are refused in the name of the function', async () => {
  const dead = pg.ones([2]);
  dead.dispose();
  const users = new Set<unknown>();
  const guarded = (value: unknown): unknown =>
    typeof value !== 'function' || value.prototype !== undefined
      ? value
      : (...args: unknown[]) => {
          try {
            return value(...args);
          } catch (error) {
            users.add(error);
            throw error;
          }
        };
  const complaints = new Set<string>();
  let tried = 0;
  for (const name of Object.keys(exported).filter((name) => isCall(name) && !engines.has(name))) {
    const f = exported[name] as Call;
    for await (const [text, changed] of wrongCalls(f, (calls.get(name) ?? []).map(guarded), dead)) {
      tried++;
      try {
        const results: unknown = await f(...changed);
        if (name !== 'keep') pg.dispose(results);
      } catch (error) {
        const { message } = error as Error;
        const ours = error instanceof pg.OperationError || error instanceof pg.PolygradError;
        // A tensor where a number is asked for refuses to be one, whoever asks.
        const asNumber = /^\[tensor\] a Tensor .* is no number: /.test(message);
        const named = without.has(name) || message.startsWith(`[${name}] `) || asNumber;
        if (!users.has(error) && !(ours && named)) complaints.add(`${name} ${text}: ${message}`);
      }
    }
    pg.setEager(false);
    pg.setRecovery({});
    pg.setPendingLimits({});
  }
  expect([...complaints]).toEqual([]);
  expect(tried).toBeGreaterThan(5000);
});
