/** A store of files: whole files, and a folder that no other user can write. */
import { execFileSync } from 'node:child_process';
import { chmod, cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { diskStore } from '../tuning/store.ts';

it('writes whole files, one for each key, and gives null for what is not there', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'polygrad-tuning-'));
  try {
    const store = diskStore(join(folder, 'deeper'));
    expect(await store.load('a key')).toBeNull();
    await Promise.all(Array.from({ length: 8 }, (_, i) => store.save('a key', `${i}`.repeat(10_000))));
    const text = (await store.load('a key')) as string;
    expect(new Set(text).size).toBe(1);
    expect(text.length).toBe(10_000);
    await store.save('a/key', 'other');
    expect(await store.load('a/key')).toBe('other');
    const files = await readdir(join(folder, 'deeper'));
    expect(files.length).toBe(2);
    expect(await readFile(join(folder, 'deeper', files[0]!), 'utf8')).not.toBe('');
    await writeFile(join(folder, 'file'), '');
    const nowhere = diskStore(join(folder, 'file', 'x'));
    await nowhere.save('k', 'v');
    expect(await nowhere.load('k')).toBeNull();
  } finally {
    await rm(folder, { recursive: true });
  }
});

it.skipIf(process.platform === 'win32')('passes over what is no file, without waiting for it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'polygrad-tuning-'));
  try {
    const store = diskStore(folder);
    await store.save('k', 'v');
    const [name] = (await readdir(folder)) as [string];
    await rm(join(folder, name));
    execFileSync('mkfifo', [join(folder, name)]);
    expect(await store.load('k')).toBeNull();
    await store.save('k', 'w');
    expect(await store.load('k')).toBe('w');
  } finally {
    await rm(folder, { recursive: true });
  }
});

it.skipIf(process.platform === 'win32')('uses only a folder that nobody else can write', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'polygrad-tuning-'));
  try {
    const [own, open] = [join(folder, 'own'), join(folder, 'open')];
    await diskStore(own).save('k', 'v');
    const [file] = (await readdir(own)) as [string];
    expect([(await stat(own)).mode & 0o777, (await stat(join(own, file))).mode & 0o777]).toEqual([0o700, 0o600]);
    await cp(own, open, { recursive: true });
    await chmod(open, 0o777);
    expect(await diskStore(open).load('k')).toBeNull();
    await diskStore(open).save('other', 'v');
    expect(await readdir(open)).toEqual([file]);
    await chmod(open, 0o755);
    expect(await diskStore(open).load('k')).toBe('v');
  } finally {
    await rm(folder, { recursive: true });
  }
});
