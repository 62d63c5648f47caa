/** What a page's bundle carries of auto-detection: nothing of Node, and late what only a first visit needs. */
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, it } from 'vitest';

it('a page carries nothing of processes, and the self-test apart', async () => {
  const { metafile, outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('./index.ts', import.meta.url))],
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    outdir: 'out',
    platform: 'browser',
    format: 'esm',
    minify: true,
    conditions: ['@polygrad/source', 'browser'],
    logLevel: 'silent',
  });
  const inputs = Object.keys(metafile.inputs);
  expect(inputs.filter((path) => /auto-detect\/src\/(processes|asked)\.ts$/.test(path))).toEqual([]);
  for (const { text } of outputFiles) expect(text).not.toMatch(/child_process|execPath/);
  const late = /self-test\/|auto-detect\/src\/(contest|kept)\.ts$/;
  expect(inputs.filter((path) => late.test(path))).not.toEqual([]);
  const first = Object.values(metafile.outputs).find(({ entryPoint }) => entryPoint?.endsWith('src/index.ts'));
  expect(Object.keys(first?.inputs ?? {}).filter((path) => late.test(path))).toEqual([]);
});
