/**
 * The same page bundled by the bundlers that people use, minified, from the sources: what it weighs, and which modules are in it.
 *
 * Each bundler gets what a usual configuration gives it; tree shaking follows `sideEffects` of the packages. Pages export what tests call,
 * which must not keep bundlers from what they do for scripts of applications: putting what chunks share with the script into the script.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import nodeResolve from '@rollup/plugin-node-resolve';
import { build as esbuild, transform } from 'esbuild';
import { rolldown } from 'rolldown';
import { rollup } from 'rollup';
import { build as vite } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));
// As for a page that is published: `development` would bring methods that only say what to import.
const conditions = ['@polygrad/source', 'production', 'browser', 'import', 'default'];
const preserveEntrySignatures = 'allow-extension';
const failOn = (message) => {
  throw new Error(message);
};

/** Bytes of texts joined, compressed as servers do. */
const gzipBytes = (texts) => gzipSync(texts.join('\n'), { level: 9 }).length;

/** Chunks that the page loads at once, reached from entries by imports that are not dynamic, and with those that hold a module. */
function startingFrom(chunks, path) {
  const byName = new Map(chunks.map((chunk) => [chunk.name, chunk]));
  const reached = new Set();
  const pending = chunks.filter(({ isEntry, modules }) => isEntry || modules.includes(path)).map(({ name }) => name);
  while (pending.length > 0) {
    const name = pending.pop();
    if (reached.has(name) || !byName.has(name)) continue;
    reached.add(name);
    pending.push(...byName.get(name).imports);
  }
  return chunks.filter(({ name }) => reached.has(name));
}

function summary(chunks) {
  const now = startingFrom(chunks);
  const modulesOf = (some) => new Set(some.flatMap(({ modules }) => modules));
  return {
    /** Code that is loaded at once, and what the page may load later, by chunk. */
    gzip: gzipBytes(now.map(({ code }) => code)),
    later: chunks.filter((chunk) => !now.includes(chunk)).map(({ name, code }) => ({ name, gzip: gzipBytes([code]) })),
    /** What a visitor has loaded for whom the page imports a module, by its path from the root folder. */
    gzipWith: (path) => startingFrom(chunks, path).reduce((sum, { code }) => sum + gzipBytes([code]), 0),
    /** Modules with code in what is loaded at once, from the root folder. */
    modules: modulesOf(now),
    /** Modules with code in any chunk. */
    allModules: modulesOf(chunks),
  };
}

/** What rollup, rolldown and Vite write. */
const fromRollup = (output) =>
  output
    .filter(({ type }) => type === 'chunk')
    .map(({ fileName, code, imports, isEntry, modules }) => ({
      name: fileName,
      code,
      imports,
      isEntry,
      modules: Object.entries(modules)
        .filter(([, { renderedLength }]) => renderedLength > 0)
        .map(([id]) => relative(root, id)),
    }));

const minified = async (chunk) => {
  const { code } = await transform(chunk.code, { minify: true, format: 'esm', target: 'es2022' });
  return { ...chunk, code };
};

const bundlers = {
  async rolldown(input) {
    const made = await rolldown({
      input,
      platform: 'browser',
      preserveEntrySignatures,
      resolve: { conditionNames: conditions },
      onLog: (level, { message }) => level === 'warn' && failOn(message),
    });
    const { output } = await made.generate({ format: 'es', minify: true });
    await made.close();
    return fromRollup(output);
  },
  async rollup(input) {
    const typescript = {
      name: 'typescript',
      async transform(text, id) {
        if (!id.endsWith('.ts')) return null;
        const { code } = await transform(text, { loader: 'ts', target: 'es2022' });
        return { code, map: null };
      },
    };
    const made = await rollup({
      input,
      preserveEntrySignatures,
      plugins: [
        nodeResolve({ browser: true, exportConditions: conditions, extensions: ['.ts', '.mjs', '.js'] }),
        typescript,
      ],
      onwarn: ({ message }) => failOn(message),
    });
    const { output } = await made.generate({ format: 'es' });
    await made.close();
    return Promise.all(fromRollup(output).map(minified));
  },
  async esbuild(input) {
    const { metafile, outputFiles } = await esbuild({
      entryPoints: [input],
      bundle: true,
      splitting: true,
      format: 'esm',
      minify: true,
      platform: 'browser',
      target: 'es2022',
      conditions,
      metafile: true,
      write: false,
      outdir: join(root, '.cache/esbuild'),
      absWorkingDir: root,
      logLevel: 'silent',
    });
    return Object.entries(metafile.outputs).map(([name, { imports, inputs, entryPoint }]) => ({
      name,
      code: outputFiles.find(({ path }) => relative(root, path) === name).text,
      imports: imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => path),
      isEntry: entryPoint === relative(root, input),
      modules: Object.entries(inputs)
        .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
        .map(([id]) => id),
    }));
  },
  async vite(input) {
    // Vite writes nothing, but looks for a folder of its own.
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-vite-'));
    try {
      const { output } = await vite({
        configFile: false,
        root: folder,
        cacheDir: folder,
        logLevel: 'error',
        resolve: { conditions },
        build: {
          write: false,
          target: 'es2022',
          modulePreload: false,
          rolldownOptions: { input, preserveEntrySignatures },
        },
      });
      return fromRollup(output);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/**
 * Bundles a page of pages/.
 *
 * @param bundler rolldown, rollup, esbuild or vite
 * @param page name without ending
 */
export async function bundlePage(bundler, page) {
  return summary(await bundlers[bundler](fileURLToPath(new URL(`pages/${page}.mjs`, import.meta.url))));
}
