// Entry point @polygrad/core/kernel: the kernel IR and everything that makes, checks and shows it.
export type { DType } from '../shape/dtype.ts';
export { PolygradError } from '../shape/errors.ts';
export * from '../ir/ir.ts';
export type { MatrixOperand, MatrixProduct } from '../ir/product.ts';
export { Exprs, uniqueNode } from '../ir/expr.ts';
export { highOf, idOf, lowOf } from '../ir/node.ts';
export { linearOf } from '../ir/simplify/linear.ts';
export { type BuildOptions, ProgramBuilder } from '../ir/builder/builder.ts';
export { type PackedProgram, packProgram, sameCode, unpackProgram } from '../ir/packed.ts';
export { optimize } from '../codegen/loops/optimize.ts';
export { decompose, linearize } from '../codegen/all-functions.ts';
export { computesIn } from '../ir/computes.ts';
export { legalize } from '../arithmetic/legalize.ts';
export { verifyLoopKernel } from '../ir/verify/nest.ts';
export { isUniform, verifyProgram } from '../ir/verify/verify.ts';
export { printLoopKernel, printNode, printProgram } from '../ir/print.ts';
export { interpret } from '../interpreter/interpret.ts';
export { evaluateNest } from '../interpreter/evaluate-nest.ts';
