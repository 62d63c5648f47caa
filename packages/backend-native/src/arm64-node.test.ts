/** The engine in Node for arm64, under an emulator: its addon, caches of instructions, two threads, the self-test. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import { isWhole } from '@polygrad/compiler/fixtures/everyday';
import { emulatedNode, whyNotEmulated } from './testing/emulated.ts';

const binary = fileURLToPath(new URL('../native/build/linux-arm64/native.node', import.meta.url));
const node = whyNotEmulated() === null ? emulatedNode() : null;
if (node !== null && !existsSync(binary)) throw new Error(`${binary} is not there: node native/build.mjs makes it`);

it.skipIf(node === null)('computes what it should', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'polygrad-arm64-'));
  const bundle = join(folder, 'run.mjs');
  try {
    await build({
      entryPoints: [fileURLToPath(new URL('fixtures/there.ts', import.meta.url))],
      outfile: bundle,
      bundle: true,
      platform: 'node',
      format: 'esm',
      conditions: ['@polygrad/source'],
      logLevel: 'silent',
    });
    const [command, ...args] = node!;
    const words = isWhole ? ['8001', '4'] : ['0', '4'];
    const { stdout, stderr } = spawnSync(command, [...args, bundle, ...words], {
      env: { ...process.env, POLYGRAD_NATIVE_ADDON: binary },
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    const { probe, passed, failed, different } = JSON.parse(stdout);
    expect(probe.reason).toMatch(/^machine code, NEON, vectors of 16 bytes, \d+ threads?$/);
    expect([failed, different]).toEqual([0, []]);
    if (isWhole) expect(passed).toBeGreaterThan(2);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
