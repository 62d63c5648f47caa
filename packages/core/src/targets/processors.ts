/**
 * Entry point @polygrad/core/engine/processors: lowering for engines with machine code, with loops for vectors, and costs from facts of the processor
 * (`caps.lowering`).
 *
 * A separate entry, so that pages whose engine is WebAssembly carry nothing of it.
 */
import { legalize } from '@polygrad/compiler/arithmetic/legalize';
import {
  narrowerLanes,
  processorCosts,
  type ProcessorFacts,
  widerLanes,
} from '@polygrad/compiler/codegen/costs/processors';
import { bestLane } from '@polygrad/compiler/codegen/linearize/best-lane';
import { steppedLoad } from '@polygrad/compiler/codegen/linearize/stepped';
import { cutFixedReductions } from '@polygrad/compiler/codegen/loops/fixed-joints';
import { pickLanes, splitPhases } from '@polygrad/compiler/codegen/loops/phases';
import { readPicks } from '@polygrad/compiler/codegen/loops/picks';
import { wideTransposes } from '@polygrad/compiler/codegen/loops/wide-transposes';
import { lowerPlain } from '@polygrad/compiler/codegen/plain';
import { byTiles } from '@polygrad/compiler/contraction/template';
import {
  lowerOnProcessor,
  processorContraction,
  processorPairs,
} from '@polygrad/compiler/contraction/transposed-results';
import type { Lowering } from '../engine/engine.ts';
import { phasesAsFeatures } from '../planner/capture/phases-as-features.ts';
import { planner } from '../planner/plan.ts';
import { vectorShaping } from './vector-shaping.ts';

export { fittingBytes, type ProcessorFacts } from '@polygrad/compiler/codegen/costs/processors';

/**
 * For engines where a group is one thread, with vectors, on a kind of processor that is known.
 *
 * @example
 * const lowering = processorLowering({ registers: 16, sums: 8, flopsPerNs: 100, cacheBytes: 1 << 20, cacheWays: 8 });
 * typeof lowering.shape; // 'function'
 */
export function processorLowering(facts: ProcessorFacts): Lowering {
  return {
    ...vectorShaping,
    legalize,
    shape: (kernel, e, caps) => vectorShaping.shape(cutFixedReductions(readPicks(kernel, e), e), e, caps),
    planner: { ...planner, phases: phasesAsFeatures },
    products: processorCosts(facts),
    narrower: narrowerLanes,
    ...(facts.registers >= 32 && { wider: widerLanes }),
    transposes: wideTransposes,
    bestLane,
    splitPhases,
    pickLanes,
    stepped: steppedLoad,
    contraction: (kernel, e, { caps }) => processorContraction(kernel, e, caps),
    pairs: (kernel, e, { caps }) => processorPairs(kernel, e, caps),
    ways: (c, kernel, e, caps) => [[byTiles, () => lowerOnProcessor(c, e, caps) ?? lowerPlain(kernel, caps)]],
  };
}
