/**
 * The examples in a document, as text: fenced `ts` blocks with at least one import in Markdown, and the `@example` parts of doc comments in
 * sources, fenced or not.
 *
 * `{ code, line, skip, name }`: `line` is where the code starts (from 1), `skip` the reason not to run it or null, `name` what a doc
 * comment stands before.
 */

const fenceMark = /^\s*```(.*)$/;

/** Info words of a fence: is it TypeScript, and why is it not run (null: it is; '': no reason is given)? */
function infoOf(text) {
  const info = /^(?:ts|typescript)(?:\s+no-run(?::\s*(.*))?)?\s*$/.exec(text.trim());
  return { typescript: info !== null, skip: /\bno-run\b/.test(text) ? (info?.[1] ?? '') : null };
}

/** Fenced blocks among lines, the first of which is line `first` of its file. */
function fencedBlocks(lines, first) {
  const found = [];
  let block = null;
  for (const [index, line] of lines.entries()) {
    const fence = fenceMark.exec(line);
    if (fence === null) block?.code.push(line);
    else if (block === null) block = { code: [], line: first + index + 1, ...infoOf(fence[1]) };
    else {
      const { code, typescript, ...rest } = block;
      if (typescript) found.push({ code: code.join('\n'), ...rest });
      block = null;
    }
  }
  return found;
}

/** True for code that says itself what it needs. */
export const imports = (code) => /^\s*import\b/m.test(code);

/** Examples of a Markdown document. Blocks without an import are fragments, and not examples. */
export function examplesInMarkdown(text) {
  return fencedBlocks(text.split('\n'), 1).filter(({ code }) => imports(code));
}

/** What is declared at the start of some code. */
const declaredName = (code) =>
  /^\s*(?:export )?(?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|interface|type|const) (\w+)/.exec(
    code,
  )?.[1] ??
  /^\s*(?:readonly |static |get |set |async )*([\w]+)/.exec(code)?.[1] ??
  '';

/** Examples of a source file. */
export function examplesInSource(text) {
  const found = [];
  for (const comment of text.matchAll(/\/\*\*(?:(?!\*\/)[\s\S])*\*\//g)) {
    const start = text.slice(0, comment.index).split('\n').length;
    const name = declaredName(text.slice(comment.index + comment[0].length));
    const lines = comment[0].split('\n').map((line) => line.replace(/^\s*(?:\/\*\*|\*(?!\/)) ?|\s*\*\/$/g, ''));
    for (const [index, line] of lines.entries()) {
      const mark = /^@example\b *(.*)$/.exec(line);
      if (mark === null) continue;
      const next = lines.findIndex((other, i) => i > index && /^@\w/.test(other));
      const body = lines.slice(index + 1, next < 0 ? undefined : next);
      if (body.some((l) => fenceMark.test(l)))
        found.push(...fencedBlocks(body, start + index + 1).map((example) => ({ ...example, name })));
      else found.push({ code: body.join('\n').trimEnd(), line: start + index + 1, ...plainMark(mark[1]), name });
    }
  }
  return found;
}

/** `@example no-run: why` marks an example without a fence. */
function plainMark(text) {
  const { skip } = infoOf(`ts ${text}`);
  return { skip };
}
