import { expect, it } from 'vitest';
import { examplesIn } from './doc-examples.mjs';

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
  expect(examplesIn(text, false)).toEqual([
    { code: `import { a } from 'b';\na();`, line: 3, skip: null },
    { code: `import 'c';`, line: 13, skip: 'needs a GPU' },
    { code: `import 'd';`, line: 16, skip: '' },
  ]);
});

it('finds only @example blocks in sources', () => {
  const text = [
    '/**',
    ' * One.',
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
    `import 'code';`,
  ].join('\n');
  expect(examplesIn(text, true)).toEqual([
    { code: `import { a } from 'b';\nif (a) {\n  a();\n}`, line: 8, skip: null },
  ]);
});
