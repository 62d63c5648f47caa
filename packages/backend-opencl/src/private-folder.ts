/** Folders that belong to one user alone, as others could put code or links into them. */
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** Makes the folder; says why it must not be used, or null. */
export function refusalOf(folder: string): string | null {
  try {
    makeFolder(folder);
    const status = lstatSync(folder);
    if (!status.isDirectory()) return `${folder} is not a folder`;
    if (process.platform === 'win32') return null;
    if (status.uid !== process.getuid?.()) return `${folder} belongs to another user`;
    if ((status.mode & 0o077) !== 0)
      return `${folder} is open to other users (mode ${(status.mode & 0o777).toString(8)}): chmod 700 makes it usable`;
    return null;
  } catch (error) {
    return `${folder} cannot be used: ${error instanceof Error ? error.message : error}`;
  }
}

/** Makes a folder and those above it. Node 20's own recursive way never ends where a file system takes no folders (/proc). */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const above = dirname(folder);
  if (above !== folder) makeFolder(above);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Somebody else may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
