/**
 * Entry point @polygrad/core/kernel/ir: the kernel IR, its builder and its text, without what lowers, checks or interprets it. Engines that pages
 * load import this, because some bundlers load all that an entry names together with it.
 */
export type { DType } from '../shape/dtype.ts';
export { PolygradError } from '../shape/errors.ts';
export * from '../ir/ir.ts';
export type { MatrixOperand, MatrixProduct } from '../ir/ir.ts';
export type { MatrixForm, MatrixTile } from '../ir/matrix.ts';
export { Exprs, uniqueNode, withSources } from '../ir/expr.ts';
export { highOf, idOf, lowOf } from '../ir/node.ts';
export { linearOf } from '../ir/simplify/integers.ts';
export { type BuildOptions, ProgramBuilder } from '../ir/builder/builder.ts';
export { type PackedProgram, packProgram, sameCode, unpackProgram } from '../ir/packed.ts';
export { endsOf } from '../ir/block-ends.ts';
export { blocksOf } from '../ir/uses.ts';
export { type Operands, type Use, type Uses, usesOf } from '../ir/uses.ts';
export { computesAll, computesIn, type TargetCaps } from '../ir/target.ts';
export { printLoopKernel, printNode, printProgram } from '../ir/print.ts';
