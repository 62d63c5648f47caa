/** Locks between processes that build one program: where they lie, and that a build waits for who holds one, and not for the dead. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Driver, openLibrary } from './addon.ts';
import { lockFileOf, poclLockFolder, poclVariables } from './build-locks.ts';
import { hasDevice } from './fixtures/device.ts';

const parent = mkdtempSync(join(tmpdir(), 'polygrad-locks-'));
afterAll(() => rmSync(parent, { recursive: true }));

it('variables that PoCL compiles by are told apart from those of places and messages', () => {
  const env = {
    HOME: '/',
    POCL_WORK_GROUP_METHOD: 'cbs',
    POCL_CACHE_DIR: '/a',
    POCL_DEBUG: '1',
    POCL_MAX_WORK_GROUP_SIZE: '',
  };
  expect(poclVariables(env)).toEqual(['POCL_WORK_GROUP_METHOD=cbs']);
  expect(poclVariables({ ...env, POCL_EXTRA_BUILD_FLAGS: '-O0' })).toEqual([
    'POCL_EXTRA_BUILD_FLAGS=-O0',
    'POCL_WORK_GROUP_METHOD=cbs',
  ]);
});

describe.skipIf(process.platform === 'win32')('files of locks', () => {
  it('lie in the folder of PoCL, wherever that is', () => {
    expect(poclLockFolder({ POCL_CACHE_DIR: '/some/where' }, 'linux')).toBe('/some/where/polygrad-locks');
    const env = { POCL_CACHE_DIR: '', XDG_CACHE_HOME: '/caches', LOCALAPPDATA: '/local' };
    expect(poclLockFolder(env, 'linux')).toBe('/caches/pocl/polygrad-locks');
    expect(poclLockFolder(env, 'win32')).toBe('/local/pocl/polygrad-locks');
  });

  it('are the same for the same kernels in one order, and few', () => {
    const folder = join(parent, 'few');
    expect(lockFileOf(folder, ['a', 'b'])).toBe(lockFileOf(folder, ['a', 'b']));
    expect(lockFileOf(folder, ['a', 'b'])).not.toBe(lockFileOf(folder, ['b', 'a']));
    expect(new Set(Array.from({ length: 5000 }, (_, i) => lockFileOf(folder, [String(i)]))).size).toBe(256);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('are nowhere in a folder that is open to others, a link or no folder', () => {
    const open = join(parent, 'open');
    mkdirSync(open);
    expect(lockFileOf(open, ['a'])).toBe('');
    const own = join(parent, 'own');
    mkdirSync(own, { mode: 0o700 });
    expect(lockFileOf(own, ['a'])).not.toBe('');
    symlinkSync(own, join(parent, 'link'));
    expect(lockFileOf(join(parent, 'link'), ['a'])).toBe('');
    writeFileSync(join(parent, 'file'), '');
    expect(lockFileOf(join(parent, 'file'), ['a'])).toBe('');
    expect(lockFileOf('/proc/nope', ['a'])).toBe('');
  });
});

const source = '__kernel void one(__global uint* x) { x[get_global_id(0)] += 1u; }';

function driverOf(): Driver {
  const addon = openLibrary();
  if (typeof addon === 'string') throw new Error(addon);
  return new addon.Driver(0, true);
}

/** A process that holds the lock on a file. */
async function holder(file: string): Promise<ChildProcess> {
  const child = spawn('flock', ['--no-fork', file, 'sh', '-c', 'echo held; exec sleep 100']);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  return child;
}

const hasFlock = spawnSync('flock', ['--no-fork', join(parent, 'try'), 'true']).status === 0;

describe.skipIf(!hasFlock || !hasDevice())('a program that is built with a lock', () => {
  it('waits for the process that has it, until that is killed', async () => {
    const driver = driverOf();
    const file = join(parent, 'lock');
    const child = await holder(file);
    const program = driver.build(source, '', true, file);
    let isBuilt = false;
    const built = driver.built(program).then(() => (isBuilt = true));
    // Time enough for it, had it not to wait.
    for (let other = 2; other < 4; other++)
      await driver.built(driver.build(source.replace('1u', `${other}u`), '', true));
    expect(isBuilt).toBe(false);
    child.kill('SIGKILL');
    await built;
    driver.finish(program);
    // The lock is given back, and loading takes it for itself.
    const loaded = driver.load(driver.binary(program), '', file);
    expect(loaded).not.toBe(program);
    expect(spawnSync('flock', ['--nonblock', file, 'true']).status).toBe(0);
    driver.dispose();
  });

  it('goes on without where the file cannot be opened, or is a link or a folder', () => {
    const driver = driverOf();
    const target = join(parent, 'target');
    symlinkSync(target, join(parent, 'link to a file'));
    for (const file of [join(parent, 'no folder', 'lock'), join(parent, 'link to a file'), parent, '/dev/null', '']) {
      const program = driver.build(source, '', true, file);
      driver.finish(program);
      driver.load(driver.binary(program), '', file);
    }
    expect(existsSync(target)).toBe(false);
    driver.dispose();
  });
});
