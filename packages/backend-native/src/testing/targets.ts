/** What this machine lets the engine be tested with. */
import { loadAddon } from '../addon.ts';
import type { NativeEngineOptions } from '../options.ts';

type Isa = NonNullable<NativeEngineOptions['isa']>;
type Bytes = NonNullable<NativeEngineOptions['vectorBytes']>;

const every: readonly (readonly [Isa, Bytes, bits: number])[] = [
  ['x64-v3', 16, 1],
  ['x64-v3', 32, 1],
  ['x64-v4', 16, 2],
  ['x64-v4', 32, 2],
  ['x64-v4', 64, 2],
  ['arm64', 16, 4],
];

/** Those of processors like this one. */
const all = every.filter(([isa]) => (isa === 'arm64') === (process.arch === 'arm64'));

/** The sets of instructions and widths of vectors that there are; says so where some are not. */
export function targets(): readonly (readonly [Isa, Bytes])[] {
  const addon = loadAddon();
  const features = typeof addon === 'string' ? 0 : addon.features();
  const found = all.filter(([, , bits]) => (features & bits) !== 0);
  if (found.length === 0 && (process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('native'))
    throw new Error(
      `POLYGRAD_REQUIRE names native, but ${typeof addon === 'string' ? addon : 'this processor or system has no AVX2 with fused multiply-add'}`,
    );
  if (found.length < all.length)
    console.warn(
      `the native engine is tested on ${found.length} of ${all.length} targets: ${typeof addon === 'string' ? addon : 'the processor has no more'}`,
    );
  return found.map(([isa, bytes]) => [isa, bytes]);
}
