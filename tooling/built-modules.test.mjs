/** What test files import in `npm test`: compiled modules of packages, and sources of fixtures; and none of them may be replaced there. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';
import { builtFrom, builtModule, builtModules } from './built-modules.mjs';
import { root } from './workspace.mjs';

const inCore = (path) => join(root, 'packages/core', path);
const plugin = builtModules();

it('takes the compiled module of a source, and the source of all else', () => {
  expect(builtFrom(inCore('src/graph/node.ts'))).toBe(inCore('dist/graph/node.js'));
  expect(builtFrom(join(root, 'apps/mnist/src/cli.ts'))).toBe(join(root, 'apps/mnist/dist/cli.js'));
  const others = [
    ...['src/graph/scopes.test.ts', 'src/fixtures/compare-calls.ts', 'src/graph/fixtures/graph-values-elementwise.ts'],
    ...['src/there-is-none.ts', 'dist/index.js', 'package.json'],
  ].map(inCore);
  for (const path of [...others, join(root, 'tooling/workspace.mjs')]) expect(builtFrom(path), path).toBeUndefined();
  expect(builtModule.test(inCore('dist/index.js'))).toBe(true);
  expect(builtModule.test(inCore('src/index.ts'))).toBe(false);
});

it('finds it from what an import names: a path, an URL, a fixture of a package', () => {
  const from = inCore('src/graph/scopes.test.ts');
  expect(plugin.resolveId('../index.ts', from)).toBe(inCore('dist/index.js'));
  expect(plugin.resolveId(pathToFileURL(inCore('src/index.ts')).href, from)).toBe(inCore('dist/index.js'));
  expect(plugin.resolveId('../fixtures/compare-calls.ts', from)).toBeUndefined();
  expect(plugin.resolveId('@polygrad/compiler/fixtures/draws', from)).toBe(
    join(root, 'packages/compiler/src/fixtures/draws.ts'),
  );
  // Node finds these by itself.
  for (const name of ['@polygrad/core', 'vitest', 'node:fs']) expect(plugin.resolveId(name, from)).toBeUndefined();
});

it('refuses to replace modules, of which nothing would come', () => {
  expect(() => vi.doMock('./workspace.mjs', () => ({}))).toThrow(/vi\.doMock .*`replacing` of vitest\.config\.ts/);
  expect(() => vi.resetModules()).toThrow(/vi\.resetModules/);
});
