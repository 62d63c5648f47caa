/** Primitives that every program carries, by family. */
import {
  registerDefinition,
  type AnyDefinition,
  type CommonPrimitive,
  define,
  type Facts,
  type Whole,
} from '../graph/definition.ts';
import { barriers, leaves } from './leaves.ts';
import { contractions } from './contraction.ts';
import { elementwise } from './elementwise.ts';
import { movements, windows } from './movement.ts';
import { reductions } from './reduction.ts';

/** Registers the common primitives; called before the first Tensor is made. */
export function registerCommon(): void {
  const common: { readonly [P in CommonPrimitive]: Facts<P> } = {
    ...leaves,
    ...elementwise,
    ...reductions,
    ...movements,
    ...windows,
    ...contractions,
    ...barriers,
  };
  for (const op in common) {
    const name = op as CommonPrimitive;
    registerDefinition(define(name, common[name] as Whole<CommonPrimitive>) as AnyDefinition);
  }
}
