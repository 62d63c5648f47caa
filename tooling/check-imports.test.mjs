import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { checkImports, cyclesOf, importsOf, isBarrel } from './check-imports.mjs';

const made = [];
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true });
});

const table = `
| room | what it is | imports |
| ---- | ---------- | ------- |
| \`shape/\` | shapes | nothing |
| \`ir/\` | kernels | shape |
| \`contraction/\` | products | ir, shape |
| \`graph/\` | nodes | shape |
| \`engine/\` | devices | ir, shape |
| \`tensor/\` | handles | engine, graph |
| \`ops/\` | operations | graph, tensor |
`;

/** Writes a small workspace and returns the violations found in it. */
function violationsOf(files) {
  const root = mkdtempSync(join(tmpdir(), 'imports-'));
  made.push(root);
  const exports = { '.': { '@polygrad/source': './src/index.ts' } };
  for (const name of ['compiler', 'core', 'nn', 'backend-cpu', 'conformance', 'emit-c']) {
    const above = name !== 'core' && name !== 'compiler';
    const peers = above ? { '@polygrad/core': '*' } : {};
    files[`packages/${name}/package.json`] ??= JSON.stringify({
      name: `@polygrad/${name}`,
      exports,
      peerDependencies: peers,
    });
  }
  files['docs/architecture.md'] ??= table;
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return checkImports(root).violations;
}

describe('importsOf', () => {
  it('reads every form and knows which ones are erased', () => {
    const source = [
      `import { a } from './a.ts';`,
      `import type { B } from './b.ts';`,
      `import { type C, type D } from './c.ts';`,
      `import {\n  e,\n  type F,\n} from './e.ts';`,
      `import './side.ts';`,
      `export { g } from './g.ts';`,
      `export * from './h.ts';`,
      `const i = await import('./i.ts');`,
      `// import { no } from './comment.ts';`,
      `/** import { no } from './doc.ts'; */`,
    ].join('\n');
    const seen = Object.fromEntries(importsOf(source).map((i) => [i.specifier, i.value]));
    expect(seen).toEqual({
      './a.ts': true,
      './b.ts': false,
      './c.ts': false,
      './e.ts': true,
      './side.ts': true,
      './g.ts': true,
      './h.ts': true,
      './i.ts': true,
    });
  });
});

it('isBarrel tells passing on from defining', () => {
  expect(isBarrel(`// all of it\nexport { a } from './a.ts';\nexport * from './b.ts';\n`)).toBe(true);
  expect(isBarrel(`export { a } from './a.ts';\nexport const b = 1;\n`)).toBe(false);
  expect(isBarrel(`import { a } from './a.ts';\nconsole.log(a);\n`)).toBe(false);
});

it('cyclesOf finds each cycle once and no more', () => {
  const graph = new Map([
    ['a', ['b', 'd']],
    ['b', ['c']],
    ['c', ['a']],
    ['d', ['e']],
    ['e', []],
    ['f', ['f']],
  ]);
  expect(cyclesOf(graph).map((cycle) => cycle.sort().join(''))).toEqual(['abc', 'f']);
});

describe('checkImports', () => {
  it('accepts what the plan allows', () => {
    const files = {
      'packages/core/src/index.ts': `export { a } from './ir/a.ts';\n`,
      'packages/core/src/ir/a.ts': `import type { B } from './b.ts';\nexport const a: B = 1;\n`,
      'packages/core/src/ir/b.ts': `export type B = number;\n`,
      'packages/nn/src/x.test.ts': `import { cpu } from '@polygrad/backend-cpu';\n`,
      'packages/conformance/src/cli.ts': `const cpu = await import('@polygrad/backend-cpu');\n`,
      'packages/conformance/package.json': JSON.stringify({
        name: '@polygrad/conformance',
        peerDependencies: { '@polygrad/backend-cpu': '*' },
      }),
    };
    expect(violationsOf(files)).toEqual([]);
  });

  it('takes from an entry what it defines itself, and nothing that it passes on', () => {
    const files = {
      'packages/core/src/index.ts': `export { a } from './ir/a.ts';\nexport function made(): void {}\n`,
      'packages/core/src/ir/a.ts': 'export const a = 1;\n',
      'packages/core/src/b.ts': `import { made } from './index.ts';\nexport const b = made;\n`,
      'packages/core/src/c.ts': `import { a, made } from './index.ts';\nexport const c = [a, made];\n`,
    };
    expect(violationsOf(files)).toEqual([expect.stringMatching(/^packages\/core\/src\/c\.ts:1 .*package's entry/)]);
  });

  const cases = [
    [
      'the IR knows the graph',
      'core/src/ir/a.ts',
      `import type { N } from '../graph/n.ts';`,
      /ir must not import graph/,
    ],
    [
      'contractions know tensors',
      'core/src/contraction/a.ts',
      `import { t } from '../tensor/t.ts';`,
      /contraction must not import tensor/,
    ],
    [
      'graph knows engines',
      'core/src/graph/a.ts',
      `import { e } from '../engine/e.ts';`,
      /graph must not import engine/,
    ],
    [
      'graph knows the programs of the compiler',
      'core/src/graph/a.ts',
      `import { s } from '@polygrad/compiler/programs/scan';`,
      /graph must not import programs/,
    ],
    [
      'rooms of the compiler in the wrong order',
      'compiler/src/ir/a.ts',
      `import { s } from '../programs/scan.ts';`,
      /ir must not import programs/,
    ],
    ['the compiler knows core', 'compiler/src/ir/a.ts', `import { t } from '@polygrad/core';`, /does not list/],
    ['a library knows the compiler', 'nn/src/a.ts', `import { e } from '@polygrad/compiler/ir/expr';`, /core's own/],
    ['a library knows a backend', 'nn/src/a.ts', `import { c } from '@polygrad/backend-cpu';`, /know backends/],
    [
      'a way round the package name',
      'nn/src/a.ts',
      `import { c } from '../../core/src/index.ts';`,
      /outside its package/,
    ],
    ['an emitter knows engines', 'emit-c/src/a.ts', `import { e } from '@polygrad/core/engine';`, /nothing else/],
    ['something not declared', 'nn/src/a.ts', `import c from 'left';`, /does not list/],
    ['a built-in module in core', 'core/src/a.ts', `import { readFileSync } from 'node:fs';`, /dynamic import/],
    ['the own entry', 'core/src/ops/a.ts', `import { t } from '../index.ts';`, /package's entry/],
    ['a barrel', 'core/src/ops/all.ts', `export { a } from './a.ts';`, /only passes names on/],
    ['a file outside', 'core/src/a.ts', `const p = '../../../../${'sha'}${'red'}/x.json';`, /outside the repository/],
    ['a missing file', 'core/src/a.ts', `import { b } from './b.ts';`, /does not exist/],
  ];
  it.each(cases)('refuses %s', (_, path, source, message) => {
    expect(violationsOf({ [`packages/${path}`]: `${source}\n` }).join('\n')).toMatch(message);
  });

  it('refuses rooms that the table does not name, or that it puts above what they import', () => {
    const files = {
      'packages/core/src/ir/a.ts': `import { b } from '../cellar/b.ts';\nexport const a = b;\n`,
      'packages/core/src/cellar/b.ts': `import { c } from '../shape/c.ts';\nexport const b = c;\n`,
      'packages/core/src/shape/c.ts': 'export const c = 1;\n',
    };
    expect(violationsOf(files).join('\n')).toMatch(/no room cellar/);
    const turned = '| `ir/` | kernels | shape |\n| `shape/` | shapes | nothing |\n';
    expect(violationsOf({ 'docs/architecture.md': turned }).join('\n')).toMatch(
      /ir imports shape, which does not stand/,
    );
  });

  it('refuses cycles of rooms, also of types and in other packages', () => {
    const files = {
      'packages/nn/src/layers/a.ts': `import type { B } from '../train/b.ts';\nexport type A = B;\n`,
      'packages/nn/src/train/b.ts': 'export type B = 1;\n',
      'packages/nn/src/train/c.ts': `import { d } from '../layers/d.ts';\nexport const c = d;\n`,
      'packages/nn/src/layers/d.ts': 'export const d = 1;\n',
    };
    expect(violationsOf(files)).toEqual([
      expect.stringMatching(/^cycle of rooms, types included: .*layers.*train|train.*layers/),
    ]);
  });

  it('refuses cycles', () => {
    const files = {
      'packages/core/src/a.ts': `import { b } from './b.ts';\nexport const a = () => b();\n`,
      'packages/core/src/b.ts': `import { a } from './a.ts';\nexport const b = () => a();\n`,
    };
    const cycle = expect.stringMatching(
      /^import cycle, types and dynamic imports included: .*(a\.ts.*b\.ts|b\.ts.*a\.ts)/,
    );
    expect(violationsOf(files)).toEqual([cycle]);
    const types = {
      ...files,
      'packages/core/src/b.ts': `import type { A } from './a.ts';\nexport const b = (a: A) => a;\n`,
    };
    expect(violationsOf(types)).toEqual([cycle]);
    const late = {
      ...files,
      'packages/core/src/b.ts': `export const b = () => import('./a.ts');\n`,
    };
    expect(violationsOf(late)).toEqual([cycle]);
  });
});
