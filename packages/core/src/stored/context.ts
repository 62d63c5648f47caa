/** What a plan depends on besides its cone: the library, the engine and its capabilities, tiles measured on it. */
import type { EngineCaps, IEngine } from '../engine/engine.ts';
import { choicesOf } from '../tuning/choices.ts';

/** Version of the format of entries; increase it with every change. */
export const format = 3;

/** A value as text: equal values give equal text, whatever the order of their fields or elements. Functions are left out; the library's version covers them. */
function textOf(value: unknown): string {
  if (value instanceof Set) return `{${[...value].map(String).sort().join()}}`;
  if (typeof value === 'function') return 'function';
  if (typeof value !== 'object' || value === null) return String(value);
  const fields = Object.entries(value).map(([name, x]) => `${name}:${textOf(x)}`);
  return `(${fields.sort().join()})`;
}

const fixed = new WeakMap<IEngine, string>();

function fixedOf(engine: IEngine): string {
  let text = fixed.get(engine);
  if (text === undefined) {
    const { lowering, ...caps }: EngineCaps = engine.caps;
    text = [engine.name, engine.device, textOf(caps), textOf(lowering), engine.codeKey ?? ''].join('\n');
    fixed.set(engine, text);
  }
  return text;
}

/** True if plans depend on tiles, or a library, that are measured while the program runs. */
function isMeasured({ caps, library }: IEngine): boolean {
  return caps.simt || library !== undefined;
}

/** The context as text. Null while plans should not be kept, because tiles are about to be measured. */
export function contextOf(engine: IEngine): string | null {
  if (!isMeasured(engine)) return fixedOf(engine);
  const choices = choicesOf(engine);
  if (engine.tuning?.automatic && choices.wanted().size > 0) return null;
  return `${fixedOf(engine)}\n${choices.write()}`;
}
