/** What a plan depends on besides its captured graph: the library, the engine and its capabilities. */
import type { EngineCaps, IEngine } from '../engine/engine.ts';
import { runs } from '../runtime/state.ts';

/** The library's version in plans: that of the packages, which a test compares. */
export const version = '0.0.0';

/** Version of the format of entries; increase it with every change. */
const format = 7;

/** The version of what is kept: the library's, the format's, and a program's own. */
export function stampOf(own = ''): string {
  return [format, version, own].join('\n');
}

/** A value as text: equal values give equal text, whatever the order of their fields or elements. */
function textOf(value: unknown): string {
  if (value instanceof Set) return `{${[...value].map(String).sort().join()}}`;
  if (typeof value === 'function') return 'function';
  if (typeof value !== 'object' || value === null) return String(value);
  const fields = Object.entries(value).map(([name, x]) => `${name}:${textOf(x)}`);
  return `(${fields.sort().join()})`;
}

/** The data of a lowering as text. Functions are left out: the library's version covers them, and some may still have to be loaded. */
function dataOf(lowering: EngineCaps['lowering']): string {
  const { planner: _, ...rest } = lowering;
  return textOf(Object.fromEntries(Object.entries(rest).filter(([, x]) => typeof x !== 'function')));
}

const fixed = new WeakMap<object, string>();

/** What a context tells of an engine, and where plans fit other devices too. */
interface Described extends Pick<IEngine, 'name' | 'caps' | 'isPortable'> {
  readonly device?: string;
  readonly codeKey?: string | undefined;
}

/** All that decides but tiles that are measured (cache.ts), as text. */
export function fixedContext(engine: Described): string {
  let text = fixed.get(engine);
  if (text === undefined) {
    const { lowering, maxBufferBytes, memoryBytes, ...caps }: EngineCaps = engine.caps;
    // Whether a plan fits into the memory of an engine is checked when it is read.
    const more =
      engine.isPortable === true ? [dataOf(lowering)] : [engine.device, maxBufferBytes, memoryBytes, textOf(lowering)];
    text = [engine.name, textOf(caps), ...more, engine.codeKey ?? ''].join('\n');
    fixed.set(engine, text);
  }
  return text;
}

/** The context of an engine whose plans a program may ship; null for others. */
export function portableContext(engine: IEngine): string | null {
  return engine.isPortable === true ? fixedContext(engine) : null;
}

/**
 * True if a file in use (`usePlanFile`) has plans for portable engines of this name, with these capabilities and this `codeKey`.
 *
 * @example
 * import { createCpuEngine } from '@polygrad/backend-cpu';
 * import { hasPlansFor } from '@polygrad/core/engine/planned';
 * console.log(hasPlansFor(createCpuEngine({ threads: 1 }))); //=> false
 */
export function hasPlansFor({ name, caps, codeKey }: Pick<Described, 'name' | 'caps' | 'codeKey'>): boolean {
  const context = fixedContext({ name, caps, codeKey, isPortable: true });
  return runs.brought?.some((contexts) => contexts.includes(context)) === true;
}
