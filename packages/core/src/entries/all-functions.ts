/**
 * The arithmetic of all primitives, for users of the kernel IR who write expressions by hand: `decompose` and `linearize` as
 * `@polygrad/core/kernel` exports them know all operations.
 */
import { bringFunctions, decompose as decomposeKnown } from '../arithmetic/decompose/decompose.ts';
import { linearize as linearizeKnown } from '../codegen/linearize/linearize.ts';
import { definitions } from '../primitives/all.ts';

function bringAll(): void {
  for (const { functions } of definitions) if (functions !== undefined) bringFunctions(functions);
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
