/**
 * A plugin of vitest.config.ts: what test files import of packages and applications are the modules that `npm run build` compiled, in `dist`, and
 * not their sources. Node loads those itself, hundreds of them in half a second; sources are transformed one by one for each project of tests, and
 * loaded again, module by module, by each process. Test files and their fixtures stay sources.
 */
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './workspace.mjs';

const source = /^(.*\/(?:packages|apps)\/[^/]+)\/src\/((?!.*\bfixtures\/).*)(?<!\.(?:test|d))\.ts$/;

/** Modules that Node loads itself: a pattern for `server.deps.external`. */
export const builtModule = /\/(?:packages|apps)\/[^/]+\/dist\/.*\.js$/;

/** The compiled module of a source, or undefined where there is none: for tests, fixtures, and what is no source of a package. */
export function builtFrom(path) {
  const [, folder, name] = source.exec(path.replaceAll('\\', '/')) ?? [];
  if (folder === undefined) return undefined;
  const built = `${folder}/dist/${name}.js`;
  // A source that is gone may have left its compiled module.
  return existsSync(path) && existsSync(built) ? built : undefined;
}

/** The plugin: resolves sources to compiled modules. */
export function builtModules() {
  return {
    name: 'built-modules',
    enforce: 'pre',
    resolveId(id, importer) {
      const [, folder, fixture] = /^@polygrad\/([^/]+)\/((?:.+\/)?fixtures\/.+)$/.exec(id) ?? [];
      if (folder !== undefined) return join(root, 'packages', folder, 'src', `${fixture}.ts`);
      if (id.startsWith('file:')) return builtFrom(fileURLToPath(id));
      if (id.startsWith('/')) return builtFrom(id);
      return id.startsWith('.') && importer !== undefined ? builtFrom(resolve(dirname(importer), id)) : undefined;
    },
  };
}
