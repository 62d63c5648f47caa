/** The public operations with their families and first sentences, from the sources of packages/core. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../workspace.mjs';

const core = join(root, 'packages/core/src');

/** Values that a list of names exports. */
const valuesOf = (names) =>
  names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !name.startsWith('type '))
    .map((name) => name.split(' as ').at(-1));

/** Functions that a file of `ops/` exports, and those of the files it passes on. */
function exportsOf(file) {
  const source = readFileSync(join(core, file), 'utf8');
  const passed = [...source.matchAll(/^export \* from '\.\/([^']+)'/gm)].flatMap(([, name]) =>
    exportsOf(`ops/${name}`),
  );
  const own = [...source.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm)].map(([, name]) => ({ name, file }));
  // Overloads are one operation.
  return [...passed, ...own.filter(({ name }, i) => own.findIndex((other) => other.name === name) === i)];
}

/** Exports of the entry point by the file they come from: functions of `ops/` alone. */
function exportsOfOps() {
  const index = readFileSync(join(core, 'functions.ts'), 'utf8');
  return [...index.matchAll(/^export (?:\*|\{([^}]*)\}) from '\.\/(ops\/[^']+)'/gm)].flatMap(([, names, file]) =>
    names === undefined ? exportsOf(file) : valuesOf(names).map((name) => ({ name, file })),
  );
}

/** First sentence of the documentation of an exported function, or null if the file exports no such function. */
function sentenceOf(source, name) {
  const at = source.search(new RegExp(`^export (?:async )?(?:function|const) ${name}\\b`, 'm'));
  if (at < 0) return null;
  const docs = [...source.slice(0, at).matchAll(/\/\*\*([\s\S]*?)\*\//g)].at(-1)?.[1] ?? '';
  const text = docs
    .replace(/^\s*\* ?/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return text
    .split(/(?<=[.:;]) (?=[A-Z@`])|(?= @)/)[0]
    .trim()
    .replace(/[;:]$/, '.');
}

/** The first sentence of a file's head comment, which names the family. */
function familyOf(source) {
  const head = /^\/\*\*([\s\S]*?)\*\//.exec(source)?.[1] ?? '';
  const text = head
    .replace(/^\s*\* ?/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return text.split(/(?<=\w)[.:;](?: |$)/)[0].trim();
}

export function publicOperations() {
  return exportsOfOps().flatMap(({ name, file }) => {
    const source = readFileSync(join(core, file), 'utf8');
    const what = sentenceOf(source, name);
    return what === null ? [] : [{ name, file, family: familyOf(source), what }];
  });
}
