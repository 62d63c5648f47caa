/** The batching rule of every primitive. */
import type { PrimitiveName } from '../graph/attrs.ts';
import { type Batches, type CommonPrimitive, definitionOf } from '../graph/definition.ts';
import type { BatchRule } from '../graph/rules.ts';
import { barrierBatches } from './barriers.ts';
import { elementwiseBatch } from './batching.ts';
import { contractionBatches } from './contraction.ts';
import type { elementwise } from './elementwise.ts';
import { leafBatches } from './leaves.ts';
import { movementBatches } from './movement.ts';
import { reductionBatches } from './reduction.ts';
import { windowBatches } from './windows.ts';

const common: Batches<Exclude<CommonPrimitive, keyof typeof elementwise | 'buffer' | 'scalar' | 'constant' | 'iota'>> =
  {
    ...leafBatches,
    ...reductionBatches,
    ...movementBatches,
    ...windowBatches,
    ...contractionBatches,
    ...barrierBatches,
  };

/** The rule of a primitive of which there is a node with sources. Elementwise primitives need none of their own. */
export function batchRuleOf<P extends PrimitiveName>(op: P): BatchRule<P> {
  return (common as { readonly [Q in P]?: BatchRule<Q> })[op] ?? definitionOf(op).batch ?? elementwiseBatch;
}
