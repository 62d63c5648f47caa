/** The targets that tests can run on this machine. */
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

/** Targets for this kind of processor. */
const all = every.filter(([isa]) => (isa === 'arm64') === (process.arch === 'arm64'));

/** The available instruction sets and vector widths; prints which are missing. */
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
