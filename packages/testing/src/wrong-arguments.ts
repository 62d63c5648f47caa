/** Calls with one argument of a wrong kind, made of a call that is right: for tests of what functions refuse, and in which words. */
import { isPlain } from '@polygrad/core/internals';
import {
  CompileError,
  DeviceLostError,
  EngineDisposedError,
  OperationError,
  PolygradError,
} from '@polygrad/core/functions';

type Named = readonly (readonly [text: string, value: unknown])[];

/** What programs in JavaScript pass by mistake. */
export const oddValues: Named = [
  ['null', null],
  ['undefined', undefined],
  ["'x'", 'x'],
  ['{}', {}],
  ['{ axis: 9 }', { axis: 9 }],
  ['[]', []],
  ['[null]', [null]],
  ['[undefined]', [undefined]],
  ["['a']", ['a']],
  ['[0, 0]', [0, 0]],
  ['[[1]]', [[1]]],
  ['[-1]', [-1]],
  ['[1.5]', [1.5]],
  ['0', 0],
  ['2', 2],
  ['1.5', 1.5],
  ['-1', -1],
  ['99', 99],
  ['-99', -99],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['true', true],
  ['3n', 3n],
  ['a function', () => 1],
];

/**
 * Names of the options that a function takes at a place, as its error for an unknown one lists them.
 *
 * @example
 * await optionsAt(ones, [[2], undefined], 1); // ['dtype', 'requiresGrad']
 */
export async function optionsAt(
  f: (...args: never[]) => unknown,
  args: readonly unknown[],
  at: number,
): Promise<string[]> {
  try {
    await f(...(args.with(at, { noSuchOption: 1 }) as never[]));
  } catch (error) {
    return /nown are ([\w, ]+)$/.exec((error as Error).message)?.[1]?.split(', ') ?? [];
  }
  return [];
}

/**
 * Variants of a call: every argument, and every part of a list or of options, replaced in turn, by `values` (odd ones; `dead` is a
 * tensor that was disposed).
 *
 * @example
 * const dead = ones([2]);
 * dead.dispose();
 * for await (const [text, args] of wrongCalls(exp, [ones([2])], dead)) console.log(text, args.length);
 */
export async function* wrongCalls(
  f: (...args: never[]) => unknown,
  args: readonly unknown[],
  dead: unknown,
  values: Named = [...oddValues, ['a disposed tensor', dead]],
): AsyncGenerator<[text: string, args: unknown[]]> {
  for (let at = 0; at <= args.length; at++) {
    const good = args[at];
    const padded = at === args.length ? [...args, undefined] : [...args];
    const options = isPlain(good) || good === undefined ? await optionsAt(f, padded, at) : [];
    const names = [...new Set([...options, ...(isPlain(good) ? Object.keys(good) : [])])];
    for (const [text, value] of values) {
      yield [`#${at}: ${text}`, padded.with(at, value)];
      if (Array.isArray(good))
        for (let i = 0; i < good.length; i++) yield [`#${at}[${i}]: ${text}`, padded.with(at, good.with(i, value))];
      for (const name of names)
        yield [`#${at}.${name}: ${text}`, padded.with(at, { ...(isPlain(good) ? good : {}), [name]: value })];
    }
  }
}

/** Helpers for messages and extensions: the first takes the name to use, the second has none. */
const unnamed: ReadonlySet<string> = new Set(['checkWeak', 'floatFor', 'promoteTypes']);

/**
 * What is wrong with the way in which a call of a function was refused; null if nothing is. Right is an error of the library, in the name of the
 * function and of moderate length. It tells of the call, not of the engine's own trouble.
 *
 * @example
 * refusalComplaint('add', new ShapeError('add', 'shapes differ: [2] and [3]; make them fit')); // null
 */
export function refusalComplaint(name: string, error: unknown): string | null {
  const { message } = error as Error;
  const ours = error instanceof PolygradError;
  const trouble = [CompileError, DeviceLostError, EngineDisposedError].some((kind) => error instanceof kind);
  // A tensor in place of a number refuses to become one.
  const asNumber = /^\[tensor\] a Tensor .* is no number: /.test(message);
  // Errors of engines say where in the engine.
  const ofEngine = ours && !(error instanceof OperationError);
  const named = ofEngine || unnamed.has(name) || message.startsWith(`[${name}] `) || asNumber;
  if (ours && !trouble && named && message.length < 2000) return null;
  return `${String((error as Error)?.name)}: ${message.slice(0, 300)}`;
}
