/** What a plan depends on besides its captured graph: the library, the engine and its capabilities. */
import type { EngineCaps, IEngine } from '../engine/engine.ts';

/** The library's version in plans: that of the packages, which a test compares. */
export const version = '0.0.0';

/** Version of the format of entries; increase it with every change. */
const format = 4;

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

const fixed = new WeakMap<IEngine, string>();

/** All that decides but tiles that are measured (cache.ts), as text. */
export function fixedContext(engine: IEngine): string {
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
