/** How engines, their capabilities and kernels look in JSON and in Node's console; and the default logger. */
import { outlineOf } from '@polygrad/compiler/ir/program';
import { showAs } from '@polygrad/compiler/shape/shown-as';
import type { CompiledKernel, EngineCaps, IEngine, Logger } from './engine.ts';

/**
 * Makes an engine, or by its prototype a class of them, show as name, device and dtypes. Backends call it.
 *
 * @example
 * const engine = showEngine({ ...createNullEngine(), device: 'a toy' });
 * JSON.stringify(engine).length < 150; // true
 */
export function showEngine<T extends IEngine>(target: T, name: string = 'IEngine'): T {
  return showAs(target, ({ name, device, caps }) => ({ name, device, dtypes: [...caps.dtypes].join(' ') }), name);
}

/**
 * Makes capabilities of an engine show sets as lists, and no functions.
 *
 * @example
 * const { caps } = createNullEngine();
 * JSON.parse(JSON.stringify(showCaps({ ...caps }))).atomics; // ['add', 'max', 'min', 'or']
 */
export function showCaps(caps: EngineCaps): EngineCaps {
  return showAs(
    caps,
    ({ lowering: _, ...rest }) =>
      Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, value instanceof Set ? [...value] : value])),
    'EngineCaps',
  );
}

/**
 * Makes a compiled kernel, or by its prototype a class of them, show as its program.
 *
 * @example
 * const { program } = randomProgram(1);
 * const kernel = showKernel({ program });
 * JSON.parse(JSON.stringify(kernel)).name === program.name; // true
 */
export function showKernel<T extends CompiledKernel>(target: T, name: string = 'CompiledKernel'): T {
  return showAs(target, ({ program }) => outlineOf(program), name);
}

/** Receives hints unless `setLogger` says otherwise: the console, but none in programs said to be in production. */
export const usualLogger: Logger | null =
  (globalThis as { process?: { env?: Record<string, string> } }).process?.env?.NODE_ENV === 'production'
    ? null
    : (text) => console.warn(text);
