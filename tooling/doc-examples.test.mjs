import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { examplesInMarkdown, examplesInSource } from './doc-examples/blocks.mjs';
import { exportsOf } from './doc-examples/exports.mjs';
import { wrongComments, wrongPlaces } from './doc-examples/places.mjs';
import { expectedOutput, moduleOf, statedBy } from './doc-examples/module.mjs';

const fence = '```';

it('finds blocks with imports in Markdown, with their lines', () => {
  const text = [
    'text',
    `${fence}ts`,
    `import { a } from 'b';`,
    'a();',
    fence,
    `${fence}ts`,
    'fragment();',
    fence,
    `${fence}sh`,
    'import x',
    fence,
    `${fence}ts no-run: needs a GPU`,
    `import 'c';`,
    fence,
    `${fence}ts no-run`,
    `import 'd';`,
    fence,
  ].join('\n');
  expect(examplesInMarkdown(text)).toEqual([
    { code: `import { a } from 'b';\na();`, line: 3, skip: null },
    { code: `import 'c';`, line: 13, skip: 'needs a GPU' },
    { code: `import 'd';`, line: 16, skip: '' },
  ]);
});

it('finds @example in sources, fenced or not, and what it is of', () => {
  const text = [
    '/** One. */',
    'const none = 1;',
    '/**',
    ' * Two.',
    ` * ${fence}ts`,
    ` * import 'no';`,
    ` * ${fence}`,
    ' * @example',
    ` * ${fence}ts`,
    ` * import { a } from 'b';`,
    ' * if (a) {',
    ' *   a();',
    ' * }',
    ` * ${fence}`,
    ' * @returns nothing',
    ' */',
    'export function two() {}',
    '  /**',
    '   * @example no-run: needs a page',
    '   * three(1); // 3',
    '   */',
    '  three(x) {}',
  ].join('\n');
  expect(examplesInSource(text)).toEqual([
    { code: `import { a } from 'b';\nif (a) {\n  a();\n}`, line: 10, skip: null, name: 'two' },
    { code: 'three(1); // 3', line: 20, skip: 'needs a page', name: 'three' },
  ]);
});

it('knows results from prose', () => {
  expect(statedBy('[1, -2.5], true')).toEqual({ values: [[1, -2.5], true], tolerance: 1e-6, of: '' });
  expect(statedBy('about 0.5')).toEqual({ values: [0.5], tolerance: 1e-3, of: '' });
  expect(statedBy('Float32Array [6, 14]')).toEqual({ values: [[6, 14]], tolerance: 1e-6, of: 'Float32Array' });
  expect(statedBy('shape [2, 3]')).toEqual({ values: [[2, 3]], tolerance: 1e-6, of: 'shape' });
  expect(statedBy("{ a: NaN, b: 'x' }").values).toEqual([{ a: Number.NaN, b: 'x' }]);
  expect(statedBy('[3n, undefined]').values).toEqual([[3n, undefined]]);
  expect(statedBy('throws ShapeError: sizes differ')).toEqual({ error: 'ShapeError' });
  for (const prose of ['always the same', 'later', '(0.1 + 2) / 2', 'process.exit(1)', ''])
    expect(statedBy(prose), prose).toBeUndefined();
});

it('checks statements of several lines, whose comment stands on the last', () => {
  const code = [
    'each((x) => {',
    '  log(x); // each of them',
    '  return x.y;',
    '})(1); // throws TypeError',
    'const z = run(() => {',
    '  return 3;',
    '}); // 3',
    'for (const a of b) {',
    '  a();',
    '} // throws TypeError',
  ];
  const { text, stated } = moduleOf({ code: code.join('\n'), line: 1 }, []);
  expect(text.split('\n')).toEqual([
    '',
    'await throwing(async () => each((x) => {',
    '  log(x); // each of them',
    '  return x.y;',
    '})(1), "throws TypeError");',
    'const z = run(() => {',
    '  return 3;',
    '}); await stated(z, "3");',
    ...code.slice(7),
    'export {};',
    '',
  ]);
  expect(stated).toBe(2);
});

it('makes modules with imports and checks, at the lines of the document', () => {
  const exports = new Map([
    ['add', { kind: 'function' }],
    ['one', { kind: 'const' }],
    ['Sum', { kind: 'interface' }],
    ['max', { kind: 'function' }],
  ]);
  const code = [
    'const max: Sum = add(one, 2); // 3',
    'x.max(); // 4',
    'add(max); // a sum',
    'add(); // throws TypeError',
  ];
  const { text, stated } = moduleOf({ code: code.join('\n'), line: 3 }, [{ specifier: 'sums', exports }]);
  expect(text.split('\n')).toEqual([
    '',
    "import { type Sum, add, one } from 'sums';",
    'const max: Sum = add(one, 2); await stated(max, "3");',
    'await stated(x.max(), "4");',
    'add(max); // a sum',
    'await throwing(async () => add(), "throws TypeError");',
    'export {};',
    '',
  ]);
  expect(stated).toBe(3);
  expect(expectedOutput('console.log(1); //=> 1\nconsole.log(2);\n  console.log(3); //=> 3 ')).toEqual(['1', '3']);
});

it('reads what declarations export', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polygrad-declarations-'));
  writeFileSync(
    join(folder, 'index.d.ts'),
    "export { type Shape, own as renamed, Kind } from './a.js';\nexport { far } from 'far';\nexport * from './b.js';\n",
  );
  writeFileSync(
    join(folder, 'a.d.ts'),
    '/** Its. @example one */\ndeclare function own(): void;\nexport declare abstract class Kind {\n}\nexport interface Shape {\n}\nexport { own };\n',
  );
  writeFileSync(join(folder, 'b.d.ts'), '/** B. */\nexport declare const b: number;\n');
  const found = exportsOf(join(folder, 'index.d.ts'));
  rmSync(folder, { recursive: true });
  expect([...found].map(([name, { kind, doc }]) => [name, kind, doc])).toEqual([
    ['Shape', 'type', ''],
    ['renamed', 'function', '/** Its. @example one */'],
    ['Kind', 'class', ''],
    ['far', 'elsewhere', ''],
    ['b', 'const', '/** B. */'],
  ]);
});

it('finds files that are named and not there, and those that are not named', () => {
  const root = mkdtempSync(join(tmpdir(), 'polygrad-places-'));
  const folder = 'packages/a/src';
  mkdirSync(join(root, folder, 'in'), { recursive: true });
  const document = `${folder}/README.md`;
  writeFileSync(
    join(root, document),
    [
      '[here](../src) [there](../none.md) [web](https://x.y)' +
        ' [ours](https://github.com/polygrad/polygrad/blob/main/packages/a) [gone](https://github.com/polygrad/polygrad/blob/main/b.md#c)',
      '`one.ts`, `part-*.ts`, `in/`',
      '`src/one.ts` `none.ts`',
      '## A heading: `one.ts`, and [more](../src)',
      '[a](#a-heading-onets-and-more) [b](README.md#a-heading) [c](#c)',
    ].join('\n'),
  );
  const sources = ['one.ts', 'part-a.ts', 'part-b.ts', 'in/deep.ts', 'one.test.ts', 'lost.ts'];
  const found = wrongPlaces(root, [document], [document, ...sources.map((name) => `${folder}/${name}`)]);
  rmSync(root, { recursive: true });
  expect(found).toEqual([
    `${document}:1 links to ../none.md, which is not there`,
    `${document}:1 links to https://github.com/polygrad/polygrad/blob/main/b.md, which is not there`,
    `${document}:3 names none.ts, which is not there`,
    `${document}:5 links to #a-heading, which no heading of ${document} is`,
    `${document}:5 links to #c, which no heading of ${document} is`,
    `${document} does not name lost.ts`,
  ]);
});

it('finds files that comments name and that are not there', () => {
  const root = mkdtempSync(join(tmpdir(), 'polygrad-comments-'));
  const lines = [
    '/** As one.ts and in/deep.ts say; deep.ts too. */',
    ' * gone.ts, in/gone.ts and name.test.ts',
    "import './lost.ts'; // and after code",
  ];
  writeFileSync(join(root, 'one.ts'), lines.join('\n'));
  const found = wrongComments(root, ['one.ts'], ['one.ts', 'in/deep.ts']);
  rmSync(root, { recursive: true });
  expect(found).toEqual([
    'one.ts:2 names gone.ts, which is not there',
    'one.ts:2 names in/gone.ts, which is not there',
  ]);
});

it("takes the READMEs of core's rooms for texts whose names are seen from the room, from src or from the root", () => {
  const root = mkdtempSync(join(tmpdir(), 'polygrad-rooms-'));
  const rooms = 'packages/core/src';
  const document = `${rooms}/one/README.md`;
  mkdirSync(join(root, rooms, 'one'), { recursive: true });
  writeFileSync(
    join(root, document),
    '`own.ts` `in/deep.ts` `in/*.ts` `in/` `other/` `other/far.ts` `docs/text.md`\n`far.ts` `deep.ts` `lost/` `in/lost-*.ts`',
  );
  writeFileSync(join(root, rooms, 'README.md'), '`two/`');
  const files = [
    document,
    `${rooms}/README.md`,
    `${rooms}/one/own.ts`,
    `${rooms}/one/unnamed.ts`,
    `${rooms}/one/in/deep.ts`,
  ];
  files.push(`${rooms}/other/far.ts`, 'docs/text.md');
  const found = wrongPlaces(root, [document, `${rooms}/README.md`], files);
  rmSync(root, { recursive: true });
  expect(found).toEqual([
    `${document}:2 names far.ts, which is not there`,
    `${document}:2 names deep.ts, which is not there`,
    `${document}:2 names in/lost-*.ts, which is not there`,
    `${document}:2 names lost/, which is not there`,
    `${rooms}/README.md:1 names two/, which is not there`,
    `${rooms}/README.md does not name other/far.ts`,
  ]);
});

it('runs modules and says where results, errors and output differ', () => {
  const cases = [
    ["await stated([1, 2.0000001], '[1, 2]');", null],
    ["await stated(Promise.resolve(new Int8Array([1])), 'Int8Array [1]');", null],
    ["await stated({ a: NaN, b: 1 }, '{ a: NaN }');", null],
    ["await stated(0.5, 'about 0.5004');", null],
    ["await throwing(() => { throw new RangeError('x'); }, 'throws RangeError');", null],
    ['console.log([1], 2); //=> [ 1 ] 2', null],
    ["await stated([1, 2], '[1, 3]');", 'Error: element 1 of the result is 2, not 3'],
    ["await stated([[1]], '[[1, 2]]');", 'Error: element 0 of the result is [ 1 ], not [ 1, 2 ]'],
    ["await stated(new Float32Array(1), 'Float64Array [0]');", 'Error: the result is a Float32Array, not Float64Array'],
    ["await throwing(() => 1, 'throws RangeError');", 'Error: it throws nothing, not RangeError'],
    ['console.log(3); //=> 4', 'Error: "4" is not among what was printed: ["3"]'],
  ];
  const folder = mkdtempSync(join(tmpdir(), 'polygrad-examples-'));
  const lines = cases.map(([code], i) => {
    const file = join(folder, `${i}.mjs`);
    writeFileSync(file, code);
    return JSON.stringify({ file: pathToFileURL(file).href, expected: expectedOutput(code) });
  });
  const program = fileURLToPath(new URL('doc-examples/run.mjs', import.meta.url));
  const { stdout } = spawnSync(process.execPath, [program, 'alone'], { input: lines.join('\n'), encoding: 'utf8' });
  rmSync(folder, { recursive: true });
  const errors = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).error);
  expect(errors).toEqual(cases.map(([, error]) => error));
});
