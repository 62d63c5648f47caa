/**
 * Entry point @polygrad/core/kernel/ir: the kernel IR, its builder and its text, without what lowers, checks or interprets it. Engines that pages
 * load import this, because some bundlers load all that an entry names together with it.
 */
export type { DType } from '@polygrad/compiler/shape/dtype';
export { PolygradError } from '@polygrad/compiler/shape/errors';
export * from '@polygrad/compiler/ir/ir';
export {
  BASE_OPS,
  type BinaryOp,
  type ReduceOp,
  type TernaryOp,
  type UnaryOp,
  type ValueOp,
} from '@polygrad/compiler/ir/operations';
export type { MatrixForm, MatrixTile } from '@polygrad/compiler/ir/matrix';
export { Exprs, uniqueNode, withSources } from '@polygrad/compiler/ir/expr';
export { highOf, idOf, lowOf } from '@polygrad/compiler/ir/node';
export { linearOf } from '@polygrad/compiler/ir/simplify/integers';
export { type BuildOptions, ProgramBuilder } from '@polygrad/compiler/ir/builder/builder';
export { type PackedProgram, packProgram, sameCode } from '@polygrad/compiler/ir/packed';
export { unpackProgram } from '@polygrad/compiler/ir/unpacked';
export { endsOf } from '@polygrad/compiler/ir/block-ends';
export { blocksOf, type Operands, type Use, type Uses, usesOf } from '@polygrad/compiler/ir/uses';
export { computesAll, computesIn, type TargetCaps } from '@polygrad/compiler/ir/target';
export { printLoopKernel, printNode, printProgram } from '@polygrad/compiler/ir/print';
