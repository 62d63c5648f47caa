/** Packages of binaries: the one in the repository is what the table of @polygrad/addon says, and binaries are told by their headers. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

interface Platform {
  readonly os: string;
  readonly cpu: string;
}
interface Platforms {
  readonly platforms: Readonly<Record<string, Platform>>;
  manifestOf(name: string, platform: string, version: string): Readonly<Record<string, unknown>>;
  platformOf(binary: Uint8Array): string | null;
}

const here = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));
const { platforms, manifestOf, platformOf } = (await import(
  new URL('../../addon/native/platforms.mjs', import.meta.url).href
)) as Platforms;
const script = here('native/package.mjs');
const json = (path: string): Record<string, unknown> => JSON.parse(readFileSync(path, 'utf8'));

/** The first bytes of binaries, as their formats define them. */
const headers: Readonly<Record<string, Buffer>> = {
  'linux-x64': elf(0x3e),
  'linux-arm64': elf(0xb7),
  'darwin-x64': words(0xfeedfacf, 0x01000007),
  'darwin-arm64': words(0xfeedfacf, 0x0100000c),
  'win32-x64': pe(0x8664),
};

function words(...list: number[]): Buffer {
  const bytes = Buffer.alloc(512);
  for (const [i, word] of list.entries()) bytes.writeUInt32LE(word, 4 * i);
  return bytes;
}
function elf(machine: number): Buffer {
  const bytes = words(0x464c457f);
  bytes.writeUInt16LE(3, 16);
  bytes.writeUInt16LE(machine, 18);
  return bytes;
}
function pe(machine: number): Buffer {
  const bytes = words(0x00905a4d);
  bytes.writeUInt32LE(0x80, 0x3c);
  bytes.writeUInt32LE(0x4550, 0x80);
  bytes.writeUInt16LE(machine, 0x84);
  return bytes;
}

const work = mkdtempSync(join(tmpdir(), 'polygrad-platforms-'));
afterAll(() => rmSync(work, { recursive: true }));

describe('packages of binaries', () => {
  it('in the repository are what the table says', () => {
    for (const name of Object.keys(platforms)) {
      const folder = here(`../backend-opencl-${name}`);
      if (!existsSync(folder)) continue;
      // Where it is kept and how it is packed, tooling/manifests.mjs fills in and tests.
      const { repository, homepage, bugs, keywords, scripts, ...own } = json(join(folder, 'package.json'));
      expect(own).toEqual(manifestOf('opencl', name, '0.0.0'));
    }
    const { optionalDependencies } = json(here('package.json')) as { optionalDependencies: Record<string, string> };
    for (const name of Object.keys(optionalDependencies))
      expect(existsSync(here(`../${name.replace('@polygrad/', '')}`)), name).toBe(true);
  });

  it('are for the platform that the header of the binary names', () => {
    expect(Object.keys(headers).sort()).toEqual(Object.keys(platforms).sort());
    for (const [name, header] of Object.entries(headers)) expect(platformOf(header)).toBe(name);
    for (const other of [Buffer.alloc(0), Buffer.from('#!/bin/sh\n'), words(0x464c457f), elf(0x28), pe(0x14c)])
      expect(platformOf(other)).toBeNull();
    const own = here('native/build/opencl.node');
    if (existsSync(own)) expect(platformOf(readFileSync(own))).toBe(`${process.platform}-${process.arch}`);
  });

  it.each(Object.keys(headers))('can be made for %s', (name) => {
    const binary = join(work, `${name}.node`);
    writeFileSync(binary, headers[name]!);
    execFileSync(process.execPath, [script, work, binary]);
    const folder = join(work, `backend-opencl-${name}`);
    expect(json(join(folder, 'package.json'))).toEqual(
      manifestOf('opencl', name, json(here('package.json')).version as string),
    );
    const { os, cpu } = platforms[name]!;
    expect(name).toBe(`${os}-${cpu}`);
  });

  it('hold the binary and what describes it', () => {
    const binary = join(work, 'packed.node');
    writeFileSync(binary, headers['linux-arm64']!);
    execFileSync(process.execPath, [script, work, binary]);
    const out = join(work, 'packed');
    mkdirSync(out);
    const [shell, cwd] = [process.platform === 'win32', join(work, 'backend-opencl-linux-arm64')];
    execFileSync('npm', ['pack', '--silent', '--pack-destination', out], { cwd, shell, stdio: 'ignore' });
    const [tarball] = readdirSync(out);
    expect(tarball).toBe('polygrad-backend-opencl-linux-arm64-0.0.0.tgz');
    const files = execFileSync('tar', ['-tzf', join(out, tarball!)], { encoding: 'utf8' });
    expect(files.trim().split('\n').sort()).toEqual([
      'package/README.md',
      'package/opencl.node',
      'package/package.json',
    ]);
  });

  it('are not made of anything else', () => {
    const binary = join(work, 'text.node');
    writeFileSync(binary, 'no binary');
    expect(() => execFileSync(process.execPath, [script, work, binary], { stdio: 'pipe' })).toThrow(
      /is no binary of a/,
    );
  });
});
