/** What one kind of engine needs to have kernels lowered for it. */
import type { Lowered, NestLowering } from '../codegen/lowering.ts';
import type { Way } from '../contraction/contract.ts';
import type { Contraction } from '../contraction/contraction.ts';
import type { Exprs } from '../ir/expr.ts';
import type { LoopKernel } from '../ir/ir.ts';
import type { EngineCaps, IEngine } from './engine.ts';

/** How kernels are lowered for a kind of engine: `threadLowering`, `vectorLowering` or `anyLowering`. */
export interface Lowering extends NestLowering {
  /** Dispatches of a kernel around a contraction; null where the plain loop nest is as good. */
  contraction(kernel: LoopKernel, e: Exprs, engine: IEngine): Lowered | null;
  /** What may be measured for a contraction, the default first. */
  ways(c: Contraction, kernel: LoopKernel, e: Exprs, caps: EngineCaps): Way[];
  /** The engine is used for the first time; `forget` when kernels should be lowered anew. */
  start?(engine: IEngine, forget: () => void): void;
}
