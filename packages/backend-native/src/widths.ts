/** Facts of processors by their instructions; and how wide vectors are for each nest of loops: narrow ones waste less where a row is short. */
import type { ProcessorFacts } from '@polygrad/core/engine/processors';

/**
 * What processors with these instructions have at least. The same for all of them, so that results are: two multiply-adds at a time that take
 * four cycles, and with AVX-512 a second-level cache of 1 MiB.
 */
export function processorFacts(isa: 'x64-v3' | 'x64-v4', vectorBytes: 32 | 64): ProcessorFacts {
  return {
    registers: isa === 'x64-v4' ? 32 : 16,
    sums: 12,
    flopsPerNs: vectorBytes * 3.5,
    cacheBytes: 2 ** 20,
    cacheWays: 16,
  };
}

/** Vectors that leave the fewest steps along a run of elements, what is left over being taken one by one. */
export function fittingBytes(most: number): (run: number, bytes: number) => number {
  return (run, bytes) => {
    const size = Math.max(4, bytes);
    const steps = (wide: number): number => Math.floor(run / (wide / size)) + (run % (wide / size));
    let best = most;
    for (let wide = most / 2; wide >= 16; wide /= 2) if (steps(wide) < steps(best)) best = wide;
    return best;
  };
}
