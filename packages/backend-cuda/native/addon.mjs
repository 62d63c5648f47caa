/** What the build of this addon, and the packages of its binaries, go by (@polygrad/addon). */
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export const addon = { name: 'cuda', title: 'CUDA', here: dirname(fileURLToPath(import.meta.url)) };
