/** The native addon: finds the binary for this platform, and describes its interface as types. native/ has the implementation. */
import { loadAddon as loadNamed } from '@polygrad/addon';

/** Engines and code are numbers. Every number, offset and length is checked; machine code is trusted. */
export interface Addon {
  /** Bits: 1 for x86-64-v3, 2 for x86-64-v4, 4 for arm64. */
  features(): number;
  /** An engine on memory that never moves, with this many threads, the calling one included. */
  create(memory: Uint8Array, threads: number): number;
  /** The memory has grown. */
  resize(engine: number, memory: Uint8Array): void;
  compile(engine: number, code: Uint8Array, params: number, scalars: number, groups: number): number;
  release(engine: number, code: number): void;
  /** Runs a batch of commands (commands.ts); undefined, or the number of the check that failed in checked code. */
  submit(engine: number, cells: Float64Array, length: number): number | undefined;
  /**
   * Returns a function that runs batches written to these cells, on a SharedArrayBuffer, behind a first cell with their number: the same in a third of
   * the time. It releases the cells given before.
   */
  submitter(engine: number, cells: Float64Array): () => number | undefined;
  dispose(engine: number): void;
}

/** Platforms with a binary, each an optional dependency. */
const platforms = ['linux-x64', 'linux-arm64', 'win32-x64'];

/** Platforms that a clone of the repository compiles a binary for, which nobody has run yet: only who asks for it gets it. */
const untried = ['darwin-arm64', 'darwin-x64'];

let loaded: Addon | string | null = null;

/** The addon, or the reason for its absence. Never throws. */
export function loadAddon(): Addon | string {
  loaded ??= find();
  return loaded;
}

function find(): Addon | string {
  const platform = `${process.platform}-${process.arch}`;
  if (untried.includes(platform) && process.env.POLYGRAD_NATIVE !== '1')
    return `it was never run on ${platform}: POLYGRAD_NATIVE=1 tries it, in a clone of the repository, where npm run setup compiles it`;
  if (!platforms.includes(platform) && !untried.includes(platform))
    return `it has code for ${platforms.join(', ')} alone, this is ${platform}`;
  const [name, from, variable] = ['native', import.meta.url, 'POLYGRAD_NATIVE_ADDON'];
  return loadNamed<Addon>({ name, from, variable, platforms, glibc: false });
}
