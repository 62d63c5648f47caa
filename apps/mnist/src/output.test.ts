/** Writing results where that fails half way. */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { OutputFolder } from './output.ts';

it('leaves no part of a file behind', async () => {
  const path = await mkdtemp(join(tmpdir(), 'polygrad-output-'));
  try {
    const folder = await OutputFolder.open(path);
    await folder.write('there.txt', 'all of it');
    // What is written cannot take its place, as on a disk that is full it cannot be written.
    await mkdir(join(path, 'weights'));
    await expect(folder.write('weights', 'x')).rejects.toThrow(/^cannot write .*weights: /);
    expect((await readdir(path)).sort()).toEqual(['there.txt', 'weights']);
  } finally {
    await rm(path, { recursive: true, force: true });
  }
});
