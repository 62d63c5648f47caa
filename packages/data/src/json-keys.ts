/**
 * Names that occur twice in an object of a JSON text. `JSON.parse` keeps the last of them and says nothing.
 *
 * Not a parser: the text must be JSON already.
 */

const [quote, backslash, brace, braceEnd, bracket, bracketEnd, comma] = Array.from('"\\{}[],', (c) => c.charCodeAt(0));

/** The first name that an object of this JSON text has twice, at any depth; undefined where all are different. */
export function repeatedName(json: string): string | undefined {
  /** The names of the objects that are open, the innermost last; null for an array. */
  const open: (Set<string> | null)[] = [];
  let names: Set<string> | null = null;
  let isName = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === quote) {
      const start = at;
      for (at++; json.charCodeAt(at) !== quote; at++) if (json.charCodeAt(at) === backslash) at++;
      if (!isName || names === null) continue;
      isName = false;
      // Two spellings of one name are the same name.
      const name = JSON.parse(json.slice(start, at + 1)) as string;
      if (names.has(name)) return name;
      names.add(name);
    } else if (code === brace || code === bracket) {
      open.push(names);
      isName = code === brace;
      names = isName ? new Set() : null;
    } else if (code === braceEnd || code === bracketEnd) {
      names = open.pop() ?? null;
      isName = false;
    } else if (code === comma) isName = names !== null;
  }
  return undefined;
}
