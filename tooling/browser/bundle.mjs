/** Bundles for browsers, made in memory from the sources, as an application's build would make them. */
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';

/**
 * Bundles modules of this folder, minified. An import that cannot be resolved, a module of Node among them, is an error.
 *
 * @param names files without ending; each becomes an entry `/<name>.js`
 * @returns texts by path, and what of the outside the bundle still asks for
 */
export async function bundle(names) {
  const warnings = [];
  const build = await rolldown({
    input: Object.fromEntries(names.map((name) => [name, fileURLToPath(new URL(`./${name}.mjs`, import.meta.url))])),
    platform: 'browser',
    resolve: { conditionNames: ['@polygrad/source', 'browser', 'import', 'default'] },
    // Entries are imported for what they export.
    preserveEntrySignatures: 'strict',
    onLog(level, log) {
      // Whoever imports all parts, as the conformance suite does, has at once what others load late.
      if (log.code === 'INEFFECTIVE_DYNAMIC_IMPORT') return;
      if (level !== 'debug' && level !== 'info') warnings.push(log.message);
    },
  });
  try {
    const { output } = await build.generate({ format: 'es', minify: true, entryFileNames: '[name].js' });
    const outside = output.flatMap((chunk) =>
      [...(chunk.imports ?? []), ...(chunk.dynamicImports ?? [])].filter(
        (name) => !output.some((c) => c.fileName === name),
      ),
    );
    const files = new Map(output.map((chunk) => [`/${chunk.fileName}`, chunk.code]));
    return { files, outside, warnings };
  } finally {
    await build.close();
  }
}

/** Bytes of texts, as they are and compressed. */
export function sizes(files) {
  const text = [...files.values()].join('');
  return { bytes: Buffer.byteLength(text), gzip: gzipSync(text, { level: 9 }).length };
}
