/** What is said where no binary fits: on platforms that are not this one, and of engines whose package lies in a folder of its own. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { loadAddon } from './load.ts';

const folder = mkdtempSync(join(tmpdir(), 'polygrad-load-'));
afterAll(() => rmSync(folder, { recursive: true }));
const places = {
  name: 'abacus',
  from: pathToFileURL(join(folder, 'src/addon.js')).href,
  variable: 'POLYGRAD_ABACUS_ADDON',
  platforms: ['linux-x64', 'win32-x64'],
};
const on = (platform: string, arch: string, glibc?: string, more = {}): unknown =>
  loadAddon({ ...places, ...more }, { platform, arch, glibcVersion: () => glibc });

describe('without a binary', () => {
  it('a platform that has none is named, with those that have one', () => {
    expect(on('darwin', 'arm64')).toBe(
      'there is no binary for darwin-arm64: there are binaries for linux-x64, win32-x64; ' +
        'in a clone of the repository npm run setup compiles one, with a C++ compiler; or use another engine',
    );
    expect(on('linux', 'arm64', '2.36')).toMatch(/^there is no binary for linux-arm64: /);
  });

  it('Linux without glibc is told of it', () => {
    expect(on('linux', 'x64')).toMatch(
      /^there is no binary for Linux without glibc, as Alpine is \(musl\): take a system/,
    );
    expect(on('linux', 'x64', undefined, { glibc: false })).toMatch(/^its native part for linux-x64 is not there/);
  });

  it('the package to install is named', () => {
    expect(on('linux', 'x64', '2.36')).toMatch(/is not there \(.*\); install @polygrad\/backend-abacus-linux-x64/);
    expect(on('win32', 'x64')).toMatch(/is not there \(.*\); install @polygrad\/backend-abacus-win32-x64/);
  });
});

describe('with a package of binaries', () => {
  it('that of the platform is loaded, and one that is no program is not', () => {
    const parts = join(folder, 'node_modules/@polygrad/backend-abacus-win32-x64');
    mkdirSync(parts, { recursive: true });
    writeFileSync(join(parts, 'package.json'), '{}');
    writeFileSync(join(parts, 'abacus.node'), 'no program');
    expect(on('win32', 'x64')).toMatch(process.platform === 'linux' ? /is cut short or no program/ : /is not there/);
  });
});

describe('engines', () => {
  it.each(['cuda', 'opencl', 'native'])('%s has a package for each platform it names', (name) => {
    const engine = fileURLToPath(new URL(`../../backend-${name}/`, import.meta.url));
    const { optionalDependencies } = JSON.parse(readFileSync(join(engine, 'package.json'), 'utf8'));
    const source = readFileSync(join(engine, 'src/addon.ts'), 'utf8');
    const named = /^const platforms = \[(.*)\];$/m.exec(source)?.[1]?.match(/[\w-]+/g) ?? [];
    expect(named.map((platform) => `@polygrad/backend-${name}-${platform}`).sort()).toEqual(
      Object.keys(optionalDependencies).sort(),
    );
  });
});
