/** What packages say about themselves, and who may pack them. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { deviceEnvironment } from './devices/environment.mjs';
import { checkManifests, publishedFolders } from './manifests.mjs';
import { root } from './workspace.mjs';
import { isWhole } from '../packages/compiler/src/fixtures/everyday.ts';

describe('manifests', () => {
  it('name the repository, words to find them by and how to pack them, and their documents link to what npm shows', () => {
    expect(publishedFolders()).toContain('packages/polygrad');
    expect(checkManifests()).toEqual([]);
  });

  it('are refused by npm, which would publish workspace: ranges, and packed by pnpm', () => {
    const pack = (agent) =>
      spawnSync(process.execPath, [join(root, 'tooling/prepack.mjs')], {
        env: { ...process.env, npm_config_user_agent: agent, npm_package_name: '@polygrad/nn' },
        encoding: 'utf8',
      });
    const npm = pack('npm/10.8.2 node/v20.20.2 linux x64');
    expect([npm.status, npm.stderr]).toEqual([
      1,
      '[publish] @polygrad/nn would be packed by npm/10.8.2, with "workspace:" ranges that nobody can install; use `pnpm publish` (or `pnpm pack`)\n',
    ]);
    expect(pack('').status).toBe(1);
    expect(pack('pnpm/12.21.0 npm/? node/v20.20.2 linux x64').status).toBe(0);
  });

  it('have a changelog whose entries name packages that are there', () => {
    const names = new Set(
      publishedFolders().map((folder) => JSON.parse(readFileSync(join(root, folder, 'package.json'))).name),
    );
    const wrong = readdirSync(join(root, '.changeset'))
      .filter((name) => name.endsWith('.md'))
      .filter((name) => {
        const text = readFileSync(join(root, '.changeset', name), 'utf8');
        const [, front, words] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text) ?? [];
        const lines = front?.split('\n').map((line) => /^'([^']+)': (?:major|minor|patch)$/.exec(line)?.[1]);
        return lines === undefined || !lines.every((line) => names.has(line)) || words.trim() === '';
      });
    expect(wrong).toEqual([]);
  });

  it('name a root that is not a package, so that `npx polygrad` means one thing', () => {
    const { name, private: hidden } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect([name, hidden]).toEqual(['polygrad-workspace', true]);
  });

  it.runIf(isWhole)('run the doctor in a checkout too, which asks the software devices that tests use', () => {
    const doctor = (...options) =>
      spawnSync(process.execPath, [join(root, 'tooling/polygrad.mjs'), 'doctor', ...options], { encoding: 'utf8' });
    const variables = { webgpu: 'VK_DRIVER_FILES', cuda: 'POLYGRAD_CUDA_DRIVER' };
    for (const variable of Object.values(variables)) vi.stubEnv(variable, undefined);
    const installed = deviceEnvironment();
    // It asks every backend in a process of its own: once is enough.
    const { status, stdout } = doctor('--json');
    vi.unstubAllEnvs();
    expect(status).toBe(0);
    const { node, backends } = JSON.parse(stdout);
    expect(node.version).toBe(process.versions.node);
    for (const [name, variable] of Object.entries(variables)) {
      if (!(variable in installed)) continue;
      expect(backends.find((b) => b.name === name)).toMatchObject({ software: true, works: true });
    }
    expect(doctor('--nowhere').stderr).toContain("no command or option '--nowhere'");
  });

  it.runIf(isWhole)(
    'say what a Node without permissions offers, where it may start no process to ask in either',
    () => {
      const permission = process.allowedNodeEnvironmentFlags.has('--permission')
        ? '--permission'
        : '--experimental-permission';
      const command = join(root, 'packages/polygrad/dist/cli.js');
      const options = [permission, '--allow-fs-read=*', command, 'doctor', '--json'];
      const { status, stdout, stderr } = spawnSync(process.execPath, options, { cwd: root, encoding: 'utf8' });
      expect(status, stderr).toBe(0);
      const { backends, chosen } = JSON.parse(stdout);
      const of = (name) => backends.find((backend) => backend.name === name);
      expect([chosen, of('cpu').works, of('native').works]).toEqual(['cpu', true, false]);
      expect(of('native').reason).toBe(
        'this Node loads no addons: it was started with --no-addons, or with --permission and without --allow-addons',
      );
    },
  );
});
