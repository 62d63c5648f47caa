/**
 * Packages joined for Node: the modules of each in few files, because Node takes longer to find and read 400 modules than to run them.
 * Packed packages name these files under the condition `node`; bundlers of pages, and this repository, take the modules themselves.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

/** Packages that programs load to compute and train, and files of theirs besides the entries: programs that others start. */
const joined = {
  '@polygrad/core': [],
  '@polygrad/nn': [],
  '@polygrad/data': [],
  '@polygrad/addon': [],
  '@polygrad/emit-c': [],
  '@polygrad/emit-ptx': [],
  '@polygrad/emit-machine': [],
  '@polygrad/backend-cpu': [],
  '@polygrad/backend-native': [],
  '@polygrad/backend-webgpu': [],
  '@polygrad/backend-opencl': [],
  '@polygrad/backend-cuda': [],
  '@polygrad/auto-detect': ['asked'],
};

/** True for a package whose packed form has joined files. */
export const isJoined = ({ name }) => Object.hasOwn(joined, name);

const folder = './dist/joined/';
const moduleOf = (target) => /^\.\/dist\/(.+)\.js$/.exec(target?.default)?.[1];

/** `exports` of a packed package: those of the repository less what only tests import, with the joined files for Node. */
export function packedExports({ exports }) {
  const packed = Object.entries(exports).filter(([path]) => !path.startsWith('./fixtures/'));
  return Object.fromEntries(
    packed.map(([path, target]) => {
      const name = moduleOf(target);
      if (name === undefined) return [path, target];
      const { default: modules, ...first } = target;
      return [path, { ...first, node: `${folder}${name}.js`, default: modules }];
    }),
  );
}

/** Files that bundlers must not leave out, for a package that lists such: what they are in is not known beforehand. */
export const joinedSideEffects = `${folder}**`;

/** Writes the joined files of the package in a folder, whose modules have been compiled. */
export async function joinModules(path) {
  const manifest = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
  if (!isJoined(manifest)) return;
  const names = [...Object.values(manifest.exports).map(moduleOf), ...joined[manifest.name]];
  const dir = join(path, folder);
  rmSync(dir, { recursive: true, force: true });
  const build = await rolldown({
    cwd: path,
    input: Object.fromEntries(
      names.filter((name) => name !== undefined).map((name) => [name, join(path, 'dist', `${name}.js`)]),
    ),
    platform: 'node',
    resolve: { conditionNames: ['node', 'import', 'default'] },
    // Only core loads the compiler in Node.
    external: (id) => /^[^./#]/.test(id) && !id.startsWith(path) && !id.startsWith('@polygrad/compiler/'),
    logLevel: 'silent',
  });
  try {
    await build.write({ dir, format: 'esm', chunkFileNames: 'chunks/[name]-[hash].js', comments: false });
  } finally {
    await build.close();
  }
}
