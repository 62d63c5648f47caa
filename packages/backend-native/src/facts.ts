/** Facts of processors by their instructions. */
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
