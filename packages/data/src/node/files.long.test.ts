/** Files above 2 GiB, which Node's `readFile` refuses. They have holes where nothing is written, so the disk holds little of them; memory holds all. */
import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readWhole } from './files.ts';

it('are read whole', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'polygrad-large-'));
  try {
    const path = join(folder, 'large.bin');
    const size = 2 ** 31 + 100;
    const file = await open(path, 'wx');
    for (const at of [0, 2 ** 30 - 1, 2 ** 30, 2 ** 31, size - 1]) await file.write(Uint8Array.of(7), 0, 1, at);
    await file.close();
    const bytes = await readWhole(path);
    expect(bytes.length).toBe(size);
    const found = [0, 1, 2 ** 30 - 1, 2 ** 30, 2 ** 31 - 1, 2 ** 31, size - 1].map((at) => bytes[at]);
    expect(found).toEqual([7, 0, 7, 7, 0, 7, 7]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
