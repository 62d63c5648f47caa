/**
 * Examples as TypeScript modules: names of the library are imported, and lines that state a result in a comment check it.
 *
 * `f(x); // [1, 2]` states a value: literals of JavaScript, several for an array of several; `about 0.5` to three places; a word before an
 * array is the class of a typed array, `shape` the shape of a tensor. `f(x); // throws ShapeError` states an error. Other comments are prose.
 */

import { imports } from './blocks.mjs';

/** Words that are a value in a comment. */
const literal =
  /^(?:-?[\d_.]+(?:e[-+]?\d+)?n?|-?Infinity|NaN|true|false|null|undefined|'[^']*'|"[^"]*"|\w+(?=:)|[[\]{},:\s])+$/;

/** What a comment states: `{ values, tolerance, of }`, `{ error }`, or undefined for prose. */
export function statedBy(comment) {
  const error = /^throws (\w*Error)\b/.exec(comment)?.[1];
  if (error !== undefined) return { error };
  const about = comment.startsWith('about ');
  const [, of = '', text = ''] = /^(?:(shape|[A-Z]\w+Array) )?(.*)$/.exec(about ? comment.slice(6) : comment) ?? [];
  if (text.trim() === '' || !literal.test(text)) return undefined;
  try {
    const values = new Function(`return [${text}]`)();
    return { values, tolerance: about ? 1e-3 : 1e-6, of };
  } catch {
    return undefined;
  }
}

const statement = /^(?:const (\w+)(?:: [\w[\]<>| ]+)? = )?([^=\s][\s\S]*?);[^\S\n]+\/\/ (.*)$/;

/** The first line of the statement that ends in line `last`: where what this closes was opened, at the same indentation. */
function firstLine(lines, last) {
  const indentation = /^\s*/.exec(lines[last])[0];
  const opens = (line) => line.startsWith(indentation) && /^[^\s})\]]/.test(line.slice(indentation.length));
  return /^\s*[})\]]/.test(lines[last]) ? lines.findLastIndex((line, at) => at < last && opens(line)) : last;
}

/** Lines with their checks, and how many these are. A statement of several lines, as one with the body of a function, has its comment on the last. */
function checkedLines(code) {
  const lines = code.split('\n');
  let count = 0;
  for (let last = 0; last < lines.length; last++) {
    const first = Math.max(0, firstLine(lines, last));
    const whole = lines.slice(first, last + 1);
    const { line, stated } = checkedLine(whole.join('\n'));
    if (!stated) continue;
    count++;
    lines.splice(first, whole.length, ...line.split('\n'));
  }
  return { text: lines.join('\n'), count };
}

/** A statement with its check, or as it is. */
function checkedLine(line) {
  const [, declared, expression = '', comment = ''] = statement.exec(line) ?? [];
  if (/^(?:const|let|return|import|using|throw|if|for|while|function|class)\b|^[}\])]/.test(expression))
    return { line, stated: false };
  const wanted = comment === '' || comment.startsWith('=>') ? undefined : statedBy(comment);
  if (wanted === undefined) return { line, stated: false };
  const text = JSON.stringify(comment);
  if (wanted.error !== undefined) return { line: `await throwing(async () => ${expression}, ${text});`, stated: true };
  return {
    line:
      declared === undefined
        ? `await stated(${expression}, ${text});`
        : `${line.slice(0, line.lastIndexOf('//')).trimEnd()} await stated(${declared}, ${text});`,
    stated: true,
  };
}

/** Import declarations, on one line, of all names that the code uses and `entries` (in order of preference) export. */
function importsFor(code, entries) {
  const text = code.replaceAll(/\/\/.*$|\.\.\./gm, '');
  const own = new Set([...text.matchAll(/\b(?:const|let|using|function|class) (\w+)/g)].map(([, name]) => name));
  for (const [, list] of text.matchAll(/\b(?:const|let) [[{]([^=]*)[\]}] =/g))
    for (const [name] of list.matchAll(/\w+(?=\s*(?:[,\]}]|$))/g)) own.add(name);
  const used = new Set([...text.matchAll(/(?<![.\w'])[A-Za-z]\w*/g)].map(([name]) => name));
  const lines = [];
  for (const { specifier, exports } of entries) {
    const names = [...used].filter((name) => exports.has(name) && !own.has(name));
    for (const name of names) used.delete(name);
    const isType = (name) => ['interface', 'type'].includes(exports.get(name).kind);
    if (names.length > 0)
      lines.push(
        `import { ${names.map((name) => (isType(name) ? `type ${name}` : name)).join(', ')} } from '${specifier}';`,
      );
  }
  return lines.join(' ');
}

/** The module of an example, its lines at the numbers they have in their document; `stated` counts the results it checks. */
export function moduleOf({ code, line }, entries) {
  const start = '\n'.repeat(Math.max(0, line - 2));
  if (imports(code)) return { text: `${start}\n${code}\nexport {};\n`, stated: expectedOutput(code).length };
  const { text, count } = checkedLines(code);
  return {
    text: `${start}${importsFor(code, entries)}\n${text}\nexport {};\n`,
    stated: count + expectedOutput(code).length,
  };
}

/** What `console.log(...); //=> text` says is printed, in order. */
export function expectedOutput(code) {
  return [...code.matchAll(/\bconsole\.log\(.*\);?\s*\/\/=>[ ]?(.*)$/gm)].map((match) => match[1].trimEnd());
}
