/** Facts of processors by their instruction sets. */
import type { MachineTarget } from '@polygrad/emit-machine';
import type { ProcessorFacts } from '@polygrad/core/engine/processors';

/**
 * What all processors with these instructions have at least. They share one set of facts, so that results are equal: two multiply-adds at a time that take
 * four cycles, and with AVX-512 a second-level cache of 1 MiB.
 */
export function processorFacts(isa: MachineTarget['isa'], vectorBytes: 16 | 32 | 64): ProcessorFacts {
  if (isa === 'arm64') return arm64Facts;
  return {
    registers: isa === 'x64-v4' ? 32 : 16,
    sums: 12,
    flopsPerNs: vectorBytes * 3.5,
    cacheBytes: 2 ** 20,
    cacheWays: 16,
  };
}

/**
 * From documents, not from measurements. Arm's Software Optimization Guides of Neoverse N1 and V1: two and four pipes for FMLA, latency 4, forwarded
 * in 2 to the addend of the next; 32 vector registers, a second-level cache of 1 MiB and 8 ways; Apple silicon and Neoverse V have four pipes and
 * more cache. A Raspberry Pi 5 (Cortex-A76) is as N1, with 512 KiB. So two pipes at about 2.4 GHz: 2 x 4 x 2 operations a cycle.
 */
const arm64Facts: ProcessorFacts = { registers: 32, sums: 12, flopsPerNs: 38, cacheBytes: 2 ** 19, cacheWays: 8 };
