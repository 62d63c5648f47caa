/** Folders of plans: who may read them, how large they grow, and folders that cannot be used. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createReferenceEngine } from '@polygrad/testing';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { stats, tensor } from '../index.ts';
import { asProcess } from './fixtures/processes.ts';
import { usualStore } from './folder.ts';

const base = mkdtempSync(join(tmpdir(), 'polygrad-plans-'));
let count = 0;
let folder = '';
beforeEach(() => {
  folder = join(base, `${count++}`, 'plans');
});
afterAll(() => rmSync(base, { recursive: true }));

const limits = { bytes: 1000, plans: 100 };
const bytes = (length: number, value = 7): Uint8Array<ArrayBuffer> => new Uint8Array(length).fill(value);

/** A process that computes something, with its plans in the folder: whether it found them, and what it was told. */
const visit = (of: string = folder) =>
  asProcess(createReferenceEngine(), { folder: of }, async ({ plans, told }) => {
    const x = tensor([1, 2, 3]);
    const y = x.add(1);
    const values = [...((await y.data()) as Float32Array)];
    for (const t of [x, y]) t.dispose();
    await plans.saved();
    expect(values).toEqual([2, 3, 4]);
    return { loaded: stats().plansLoaded, told };
  });

describe('a folder of plans', () => {
  it('and its files are of the user alone, and a second process finds them', async () => {
    expect(await visit()).toEqual({ loaded: 0, told: [] });
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const files = readdirSync(folder);
    expect(files.length).toBe(1);
    expect(statSync(join(folder, files[0]!)).mode & 0o777).toBe(0o600);
    expect(await visit()).toEqual({ loaded: 1, told: [] });
    expect(readdirSync(folder)).toEqual(files);
  });

  it('gives the newest entries, those of a version alone, until there are enough', async () => {
    const store = usualStore({ folder });
    for (const [i, name] of ['a-1', 'a-2', 'b-1', 'a-3'].entries()) {
      await store.save(name, bytes(300, i), limits);
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    const names = async (most: Partial<typeof limits>) =>
      (await store.load('a-', { ...limits, ...most })).map(({ name }) => name);
    expect(await names({})).toEqual(['a-3', 'a-2', 'a-1']);
    expect(await names({ bytes: 700 })).toEqual(['a-3', 'a-2']);
    expect(await names({ plans: 1 })).toEqual(['a-3']);
    await store.remove('a-3');
    expect(await names({})).toEqual(['a-2', 'a-1']);
  });

  it('loses the oldest entries where there are too many, or too large ones, and what was left half written', async () => {
    const store = usualStore({ folder });
    for (let i = 0; i < 12; i++) {
      await store.save(`a-${i}`, bytes(100), { bytes: 1000, plans: 5 });
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    expect(readdirSync(folder).sort()).toEqual([7, 8, 9, 10, 11].map((i) => `a-${i}.plan`).sort());
    const left = join(folder, 'a-1-99-x.part');
    writeFileSync(left, 'half');
    await store.save('a-12', bytes(900), { bytes: 1000, plans: 5 });
    // It may be being written.
    expect(existsSync(left)).toBe(true);
    expect(readdirSync(folder).sort()).toEqual(['a-1-99-x.part', 'a-11.plan', 'a-12.plan']);
  });

  it('reads no links, folders and pipes, and nothing larger than may be', async () => {
    const store = usualStore({ folder });
    await store.save('a-1', bytes(10), limits);
    symlinkSync(join(folder, 'a-1.plan'), join(folder, 'a-2.plan'));
    mkdirSync(join(folder, 'a-3.plan'));
    writeFileSync(join(folder, 'a-4.plan'), bytes(2000));
    expect((await store.load('a-', limits)).map(({ name }) => name)).toEqual(['a-1']);
  });

  it('is written by two at once, each file whole', async () => {
    const stores = [usualStore({ folder }), usualStore({ folder })];
    const writes = Array.from({ length: 40 }, (_, i) =>
      stores[i % 2]!.save('a-1', bytes(5000, i), { ...limits, bytes: 1e6 }),
    );
    const reads = writes.map(async () => stores[0]!.load('a-', { ...limits, bytes: 1e6 }));
    await Promise.all(writes);
    for (const found of await Promise.all(reads))
      for (const { bytes: each } of found) expect(each).toEqual(bytes(5000, each[0]));
    expect(readdirSync(folder)).toEqual(['a-1.plan']);
  });
});

describe('folders that cannot be used', () => {
  it('are as none, and told of once', async () => {
    const file = join(base, 'file');
    writeFileSync(file, '');
    for (const [bad, why] of [
      [join(file, 'plans'), /cannot be used: ENOTDIR/],
      [file, /is not a folder/],
      ['/proc/polygrad/plans', /cannot be used/],
    ] as const) {
      const { loaded, told } = await visit(bad);
      expect(loaded).toBe(0);
      expect(told.length).toBe(1);
      expect(told[0]).toMatch(why);
    }
  });

  it.skipIf(process.platform === 'win32')('are those that others may read', async () => {
    await visit();
    chmodSync(folder, 0o750);
    const { loaded, told } = await visit();
    expect(loaded).toBe(0);
    expect(told).toEqual([expect.stringMatching(/open to other users \(mode 750\): chmod 700 makes it usable/)]);
    chmodSync(folder, 0o700);
    expect(await visit()).toEqual({ loaded: 1, told: [] });
  });
});
