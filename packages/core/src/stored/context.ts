/** What decides, beside a cone, which plan is made for it: the library, the engine and what it can do, tiles measured on it. */
import type { EngineCaps, IEngine } from '../engine/engine.ts';
import { choicesOf } from '../tuning/choices.ts';

/** Of the form of entries: changes when what is written does. */
export const format = 2;

/** A value as text: the same for equal values, whatever the order of their fields or elements. Functions belong to the library's version. */
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

/** True where plans come to rest on tiles, or a library, that are measured while the program runs. */
function isMeasured({ caps, library }: IEngine): boolean {
  return caps.simt || library !== undefined;
}

/** Null while plans are not to be kept: tiles are about to be measured for what this process plans. */
export function contextOf(engine: IEngine): string | null {
  if (!isMeasured(engine)) return fixedOf(engine);
  const choices = choicesOf(engine);
  if (engine.tuning?.automatic && choices.wanted().size > 0) return null;
  return `${fixedOf(engine)}\n${choices.write()}`;
}
