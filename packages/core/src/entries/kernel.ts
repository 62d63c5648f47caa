/**
 * Entry point @polygrad/core/kernel: the kernel IR and everything that makes, checks and shows it.
 *
 * `decompose` and `linearize` know all operations here, for users who write expressions by hand: they bring the arithmetic of all primitives.
 */
import { decompose as decomposeKnown } from '@polygrad/compiler/arithmetic/decompose/decompose';
import { registerFunctions } from '@polygrad/compiler/arithmetic/decompose/functions';
import { linearize as linearizeKnown } from '@polygrad/compiler/codegen/linearize/linearize';
import { definitions } from '../primitives/all.ts';

export * from './ir.ts';
export { findRareSides, type RareSide } from '@polygrad/compiler/ir/rare';
export { unrollFactor } from '@polygrad/compiler/ir/unroll';
export { operandsOf } from '@polygrad/compiler/ir/operands';
export {
  type SquareColumn,
  findRuns,
  isGather,
  lanesOfPart,
  pickColumn,
  type Run,
  type RunPlace,
} from '@polygrad/compiler/ir/windows';
export { optimize } from '@polygrad/compiler/codegen/loops/optimize';
export { legalize } from '@polygrad/compiler/arithmetic/legalize';
export { verifyLoopKernel } from '@polygrad/compiler/ir/verify/verify';
export { verifyShared } from '@polygrad/compiler/ir/verify/races';
export { isUniform, verifyProgram } from '@polygrad/compiler/ir/verify/verify';
export { printTransforms } from '@polygrad/compiler/ir/print';
export { interpret } from '@polygrad/compiler/interpreter/interpret';
export { evaluateNest } from '@polygrad/compiler/interpreter/evaluate-nest';

function bringAll(): void {
  for (const { functions } of definitions) if (functions !== undefined) registerFunctions(functions);
}

/**
 * `decompose` of decompose/decompose.ts for any expression: equal expressions of operations that an engine has.
 *
 * @example
 * const e = new Exprs();
 * const { caps } = createNullEngine({ nativeOps: new Set() });
 * const [tanh] = decompose([e.unary('TANH', e.scalar(0, 'float32'))], e, caps);
 * tanh?.op === 'TANH'; // false
 */
export const decompose: typeof decomposeKnown = (...args) => {
  bringAll();
  return decomposeKnown(...args);
};

/**
 * `linearize` of codegen/linearize/linearize.ts for any expression: the program of a loop nest. The nest is taken as it stands: call `optimize` before.
 *
 * @example
 * const e = new Exprs();
 * const x = e.param(0, 'float32', 'read', 2);
 * const y = e.param(1, 'float32', 'write', 2);
 * const i = e.range(2);
 * const store = e.store(y, i, e.mul(e.load(x, i), 2));
 * const kernel: LoopKernel = { name: 'twice', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
 * const { caps } = createReferenceEngine();
 * const program = linearize(optimize(kernel, caps), caps);
 * const result = new Float32Array(2);
 * interpret(program, [Float32Array.of(1, 2), result]);
 * result; // [2, 4]
 */
export const linearize: typeof linearizeKnown = (...args) => {
  bringAll();
  return linearizeKnown(...args);
};
