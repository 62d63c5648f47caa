// Entry point @polygrad/core/kernel: the kernel IR and everything that makes, checks and shows it.
export type { DType } from '../shape/dtype.ts';
export * from './ir.ts';
export type { MatrixOperand, MatrixProduct } from './product.ts';
export { Exprs, uniqueNode } from './expr.ts';
export { highOf, idOf, lowOf } from './node.ts';
export { linearOf } from './simplify-linear.ts';
export { type BuildOptions, ProgramBuilder } from './builder.ts';
export { type PackedProgram, packProgram, sameCode, unpackProgram } from './packed.ts';
export { optimize } from './axes.ts';
export { decompose, linearize } from './all-functions.ts';
export { computesIn } from './computes.ts';
export { legalize } from './legalize.ts';
export { verifyLoopKernel } from './verify-nest.ts';
export { verifyProgram } from './verify.ts';
export { printLoopKernel, printNode, printProgram } from './print.ts';
export { interpret } from './interpret.ts';
export { evaluateNest } from './evaluate-nest.ts';
