// Entry point @polygrad/core/kernel: the kernel IR and everything that makes, checks and shows it.
export * from './ir.ts';
export { optimize } from '../codegen/loops/optimize.ts';
export { decompose, linearize } from './all-functions.ts';
export { legalize } from '../arithmetic/legalize.ts';
export { verifyLoopKernel } from '../ir/verify/verify.ts';
export { isUniform, verifyProgram } from '../ir/verify/verify.ts';
export { printTransforms } from '../ir/print.ts';
export { interpret } from '../interpreter/interpret.ts';
export { evaluateNest } from '../interpreter/evaluate-nest.ts';
