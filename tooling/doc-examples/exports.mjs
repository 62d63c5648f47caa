/** What the entry points of a package export, from their declarations: names, whether they are types, and where they are documented. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { compilerFile, root } from '../workspace.mjs';

/** Files of the package itself, and of the compiler, which is core's own. */
const isOwn = (from) => from.startsWith('.') || compilerFile(from) !== undefined;

function declarationOf(file, from) {
  const path = compilerFile(from);
  return path === undefined
    ? join(dirname(file), from.replace(/\.[jt]s$/, '.d.ts'))
    : join(root, 'packages/compiler/dist', `${path}.d.ts`);
}

/** The last doc comment of `text`, if nothing stands behind it. */
const docBefore = (text) => /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.exec(text)?.[0].trim() ?? '';

/**
 * Exports of a declaration file as a Map from the name to `{ name, kind, file, doc }`. Kinds are function, class, const, interface and type, or
 * `elsewhere` for what another package declares.
 */
export function exportsOf(file, seen = new Map()) {
  const known = seen.get(file);
  if (known !== undefined) return known;
  const found = new Map();
  seen.set(file, found);
  const text = readFileSync(file, 'utf8');
  const declared = new Map();
  for (const match of text.matchAll(
    /^(export )?declare (?:abstract )?(?:async )?(function|class|const|let) \*?(\w+)|^(export )?(interface|type) (\w+)/gm,
  )) {
    const [, value, valueKind, valueName, type, typeKind, typeName] = match;
    const name = valueName ?? typeName;
    const entry = { name, kind: valueKind ?? typeKind, file, doc: docBefore(text.slice(0, match.index)) };
    // Of overloads, the first that is documented counts.
    if (!declared.get(name)?.doc) declared.set(name, entry);
    if (value || type) found.set(name, declared.get(name));
  }
  for (const [, list, from] of text.matchAll(/^export (?:type )?\{([^}]*)\}(?: from '([^']+)')?/gm))
    for (const part of list.split(',')) {
      const [own, name = own] = part
        .trim()
        .replace(/^type /, '')
        .split(' as ');
      if (own === '') continue;
      const source =
        from === undefined ? declared : isOwn(from) ? exportsOf(declarationOf(file, from), seen) : new Map();
      const entry = source.get(own) ?? { name, kind: 'elsewhere', file, doc: '' };
      found.set(name, part.trim().startsWith('type ') ? { ...entry, kind: 'type' } : entry);
    }
  for (const [, from] of text.matchAll(/^export \* from '([^']+)'/gm))
    if (isOwn(from)) for (const [name, entry] of exportsOf(declarationOf(file, from), seen)) found.set(name, entry);
  return found;
}

/** Entry points of a package: `{ specifier, exports }`, in the order of its package.json. */
export function entriesOf(folder) {
  const { name, exports = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return Object.entries(exports).flatMap(([path, { types }]) => {
    const file = types === undefined ? undefined : join(folder, types);
    // What packages of this repository alone import has no examples.
    return path !== './internals' && file !== undefined && existsSync(file)
      ? [{ specifier: `${name}${path.slice(1)}`, exports: exportsOf(file) }]
      : [];
  });
}
