/** The native addon: finding its binary for this platform, and its interface as types. What it does is in native/. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Engines and code are numbers. Every number, offset and length is checked; machine code is trusted. */
export interface Addon {
  /** Bits: 1 for x86-64-v3, 2 for x86-64-v4. */
  features(): number;
  /** An engine on a memory that keeps its place, with so many threads, the calling one among them. */
  create(memory: Uint8Array, threads: number): number;
  /** The memory has grown. */
  resize(engine: number, memory: Uint8Array): void;
  compile(engine: number, code: Uint8Array, params: number, scalars: number, groups: number): number;
  release(engine: number, code: number): void;
  /** Runs a batch of commands (commands.ts); 0, or the number of the check that failed in checked code. */
  submit(engine: number, cells: Float64Array, length: number): number;
  dispose(engine: number): void;
}

let loaded: Addon | string | null = null;

/** The addon, or the reason why it is not there. Never throws. */
export function loadAddon(): Addon | string {
  loaded ??= find();
  return loaded;
}

function find(): Addon | string {
  const platform = `${process.platform}-${process.arch}`;
  if (platform !== 'linux-x64') return `it writes code for Linux on x86-64 alone so far, this is ${platform}`;
  const require = createRequire(import.meta.url);
  // In the repository native/build.mjs has compiled it; users have it from the package of their platform.
  const own = fileURLToPath(new URL('../native/build/native.node', import.meta.url));
  try {
    return require(existsSync(own) ? own : `@polygrad/backend-native-${platform}/native.node`) as Addon;
  } catch (error) {
    const text = error instanceof Error ? error.message.split('\n')[0] : String(error);
    return `its native part for ${platform} is not there (${text}); install @polygrad/backend-native-${platform}, or in the repository run npm run setup with a C compiler`;
  }
}
