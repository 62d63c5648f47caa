/** Calls with one argument of a wrong kind, made of a call that is right: for tests of what functions refuse, and in which words. */
import { isPlain } from '../shape/shown.ts';

type Named = readonly (readonly [text: string, value: unknown])[];

/** What programs in JavaScript pass by mistake; `dead` is a tensor that was disposed. */
const wrong = (dead: unknown): Named => [
  ['null', null],
  ['undefined', undefined],
  ["'x'", 'x'],
  ['{}', {}],
  ['[]', []],
  ['[null]', [null]],
  ['1.5', 1.5],
  ['-1', -1],
  ['NaN', Number.NaN],
  ['true', true],
  ['3n', 3n],
  ['a function', () => 1],
  ['a disposed tensor', dead],
];

/** Names of the options that a function takes at a place, as its error for an unknown one lists them. */
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
 * Variants of a call: every argument, and every part of a list or of options, replaced in turn, by `values` (common mistakes).
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
  values: Named = wrong(dead),
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
