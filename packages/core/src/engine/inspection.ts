/** What people see of engines, their capabilities and their kernels, in JSON and in Node's console; and what is said there unasked. */
import { outlineOf } from '@polygrad/compiler/ir/program';
import { showAs } from '@polygrad/compiler/shape/shown-as';
import type { CompiledKernel, EngineCaps, IEngine, Logger } from './engine.ts';

/**
 * Shows an engine, or a class of them by its prototype, by name, device and dtypes. Backends call it.
 *
 * @example
 * const engine = showEngine({ ...createNullEngine(), device: 'a toy' });
 * JSON.stringify(engine).length < 150; // true
 */
export function showEngine<T extends IEngine>(target: T, name: string = 'IEngine'): T {
  return showAs(target, ({ name, device, caps }) => ({ name, device, dtypes: [...caps.dtypes].join(' ') }), name);
}

/**
 * Shows capabilities of an engine with sets as lists, and without functions.
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
 * Shows a compiled kernel, or a class of them by its prototype, as its program.
 *
 * @example
 * const { program } = randomProgram(1);
 * const kernel = showKernel({ program });
 * JSON.parse(JSON.stringify(kernel)).name === program.name; // true
 */
export function showKernel<T extends CompiledKernel>(target: T, name: string = 'CompiledKernel'): T {
  return showAs(target, ({ program }) => outlineOf(program), name);
}

/** Whom hints go to unless `setLogger` says otherwise: the console, but nobody in programs that are said to be in production. */
export const usualLogger: Logger | null =
  (globalThis as { process?: { env?: Record<string, string> } }).process?.env?.NODE_ENV === 'production'
    ? null
    : (text) => console.warn(text);
