/** Where native code may not run, or computes wrongly: each reason has its sentence, nothing throws but the engine itself. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { faultyAddon } from './fixtures/faults.ts';
import { targets } from './testing/targets.ts';

const there = targets().length > 0;
const binary = fileURLToPath(new URL('../native/build/native.node', import.meta.url));

describe.skipIf(!there)('a mishap', () => {
  const faulty = there ? faultyAddon() : '';
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.resetModules();
  });

  it.each([
    ['processor', 'the processor or the system has no AVX2 with fused multiply-add'],
    ['executable', 'its self-test failed: [native] the system does not let memory be made executable'],
    ['memory', 'its self-test failed: [native] no memory for an engine'],
    ['answers', /^its self-test failed: element 0 of a product is .*, expected -3$/],
  ])('%s is the reason of the probe, and what the engine throws', async (fault, reason) => {
    vi.stubEnv('POLYGRAD_NATIVE_ADDON', faulty);
    vi.stubEnv('POLYGRAD_NATIVE_FAULT', fault);
    vi.resetModules();
    const { nativeProvider } = await import('./provider.ts');
    const found = await nativeProvider.probe();
    expect(found).toMatchObject({ score: 0, device: 'none' });
    expect(found.reason).toMatch(reason);
    expect(found.processor).toBeUndefined();
    expect(() => nativeProvider.create()).toThrow(reason instanceof RegExp ? 'its self-test failed' : reason);
  });

  it('threads leaves the calling thread', async () => {
    vi.stubEnv('POLYGRAD_NATIVE_ADDON', faulty);
    vi.stubEnv('POLYGRAD_NATIVE_FAULT', 'threads');
    vi.resetModules();
    const { nativeProvider } = await import('./provider.ts');
    expect((await nativeProvider.probe()).score).toBeGreaterThan(0);
    (await nativeProvider.create({ threads: 8 })).dispose();
  });

  it('a binary that is not there or cut short is told', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-native-'));
    const short = join(folder, 'native.node');
    writeFileSync(short, 'x'.repeat(100));
    const reasonWith = async (file: string): Promise<string> => {
      vi.stubEnv('POLYGRAD_NATIVE_ADDON', file);
      vi.resetModules();
      const { nativeProvider } = await import('./provider.ts');
      return (await nativeProvider.probe()).reason;
    };
    try {
      expect(await reasonWith(short)).toContain('is cut short or no program: install the package again');
      expect(await reasonWith(join(folder, 'none.node'))).toContain('install @polygrad/backend-native-linux-x64');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  const reasonOn = async (platform: string, arch: string): Promise<readonly [number, string]> => {
    vi.resetModules();
    vi.spyOn(process, 'platform', 'get').mockReturnValue(platform as NodeJS.Platform);
    vi.spyOn(process, 'arch', 'get').mockReturnValue(arch as NodeJS.Architecture);
    const { nativeProvider } = await import('./provider.ts');
    const { score, reason } = await nativeProvider.probe();
    vi.restoreAllMocks();
    return [score, reason];
  };

  it.each([
    ['linux', 'riscv64'],
    ['win32', 'arm64'],
  ])('another platform is named: %s on %s', async (platform, arch) => {
    const reason = `it has code for linux-x64, linux-arm64, win32-x64 alone, this is ${platform}-${arch}`;
    expect(await reasonOn(platform, arch)).toEqual([0, reason]);
  });

  it('macOS has it where it is asked for', async () => {
    const [score, reason] = await reasonOn('darwin', 'arm64');
    expect(score).toBe(0);
    expect(reason).toMatch(/^it was never run on darwin-arm64: POLYGRAD_NATIVE=1 tries it, in a clone/);
    vi.stubEnv('POLYGRAD_NATIVE', '1');
    vi.stubEnv('POLYGRAD_NATIVE_ADDON', join(tmpdir(), 'none.node'));
    expect((await reasonOn('darwin', 'arm64'))[1]).toMatch(
      /^there is no binary for darwin-arm64: there are binaries for linux-x64, linux-arm64, win32-x64; in a clone/,
    );
  });
});

describe.skipIf(!existsSync(binary))('a Node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polygrad-native-'));
  const bundle = join(folder, 'probe.mjs');
  beforeAll(async () => {
    await build({
      stdin: {
        contents: `import { nativeProvider } from './provider.ts'; console.log(JSON.stringify(await nativeProvider.probe()));`,
        resolveDir: fileURLToPath(new URL('.', import.meta.url)),
        loader: 'ts',
      },
      outfile: bundle,
      bundle: true,
      platform: 'node',
      format: 'esm',
      conditions: ['@polygrad/source'],
      logLevel: 'silent',
    });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const [major] = process.versions.node.split('.').map(Number) as [number];
  const permission = major < 23 ? '--experimental-permission' : '--permission';
  const reasonUnder = (...flags: readonly string[]): string => {
    const env = { ...process.env, POLYGRAD_NATIVE_ADDON: binary };
    const text = execFileSync(process.execPath, [...flags, bundle], { env, encoding: 'utf8', stdio: 'pipe' });
    return (JSON.parse(text) as { readonly reason: string }).reason;
  };

  it('as usual has it', () => expect(reasonUnder()).toMatch(there ? /^machine code/ : /AVX2/));

  it('that loads no addons says so', () => {
    const sentence =
      'this Node loads no addons: it was started with --no-addons, or with --permission and without --allow-addons';
    expect(reasonUnder('--no-addons')).toBe(sentence);
    expect(reasonUnder(permission, '--allow-fs-read=*')).toBe(sentence);
  });

  it('that may not read the folder says so', () => {
    expect(reasonUnder(permission, `--allow-fs-read=${folder}/*`)).toBe(
      'this Node may not read its native part: it was started with --permission, and --allow-fs-read does not name its folder',
    );
  });

  it.skipIf(!there)('without WebAssembly has it', () => expect(reasonUnder('--jitless')).toMatch(/^machine code/));
});
