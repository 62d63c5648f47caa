/**
 * Every function of functions.ts, for users of the kernel IR who write expressions by hand: `decompose` and `linearize` as
 * `@polygrad/core/kernel` exports them know all operations.
 */
import { decompose as decomposeKnown } from '../arithmetic/decompose/decompose.ts';
import { ceil, fma, mulHigh, round, trunc } from '../arithmetic/decompose/basic.ts';
import { acos, asin, atan, atan2 } from '../arithmetic/decompose/arc.ts';
import { erf } from '../arithmetic/decompose/erf.ts';
import { exp2, expm1 } from '../arithmetic/decompose/exp.ts';
import { frem } from '../arithmetic/decompose/frem.ts';
import { cosh, sinh, tanh } from '../arithmetic/decompose/hyperbolic.ts';
import { log10, log1p, log2 } from '../arithmetic/decompose/log.ts';
import { pow } from '../arithmetic/decompose/pow.ts';
import { cos, sin, tan } from '../arithmetic/decompose/trig.ts';
import { type BroughtOp, bringFunctions, type FloatFunction } from '../arithmetic/functions.ts';
import { linearize as linearizeKnown } from './linearize/linearize.ts';

export const allFunctions: Readonly<Record<BroughtOp, FloatFunction>> = {
  CEIL: ceil,
  TRUNC: trunc,
  ROUND: round,
  EXP2: exp2,
  EXPM1: expm1,
  LOG2: log2,
  LOG10: log10,
  LOG1P: log1p,
  SIN: sin,
  COS: cos,
  TAN: tan,
  ASIN: asin,
  ACOS: acos,
  ATAN: atan,
  SINH: sinh,
  COSH: cosh,
  TANH: tanh,
  ERF: erf,
  POW: pow,
  ATAN2: atan2,
  FREM: frem,
  MULHI: mulHigh,
  FMA: fma,
};

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
  bringFunctions(allFunctions);
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
  bringFunctions(allFunctions);
  return linearizeKnown(...args);
};
