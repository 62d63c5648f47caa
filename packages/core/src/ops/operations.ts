/**
 * The families of operations: all that their files export is public, and every function there is a method of Tensors too.
 *
 * functions.ts passes it on, and methods/ makes methods of it. What is of no tensor (`zeros`, `concat`, `where`) is in other files, which
 * functions.ts names. Families that are alike stand side by side, which also makes bundles with all of them a little smaller.
 */
export * from './arithmetic.ts';
export * from './compound.ts';
export * from './logic.ts';
export * from './exponential.ts';
export * from './trigonometric.ts';
export * from './error-function.ts';
export * from './gamma.ts';
export * from './rounding.ts';
export * from './bitwise.ts';
export * from './activation.ts';
export * from './piecewise.ts';
export * from './softmax.ts';
export * from './reduction.ts';
export * from './statistics.ts';
export * from './cumulative.ts';
export * from './quantile.ts';
export * from './sorting.ts';
export * from './searching.ts';
export * from './selecting.ts';
export * from './matmul.ts';
export * from './products.ts';
export * from './distance.ts';
export * from './rbf.ts';
export * from './shape.ts';
export * from './repeating.ts';
export * from './slicing.ts';
export * from './splitting.ts';
export * from './padding.ts';
export * from './triangles.ts';
export * from './diagonals.ts';
export * from './indexing.ts';
export * from './scattering.ts';
export * from './patches.ts';
export * from './attention.ts';
export * from './rotary.ts';
export * from './embedding.ts';
export * from './convolution.ts';
export * from './conv-transpose.ts';
export * from './local-convolution.ts';
export * from './graph-convolution.ts';
export * from './max-pooling.ts';
export * from './average-pooling.ts';
export * from './adaptive-pooling.ts';
export * from './interpolate.ts';
export * from './grid-sample.ts';
export * from './normalization.ts';
export * from './image-normalization.ts';
export * from './dropout.ts';
export * from './loss.ts';
export * from './class-loss.ts';
export * from './margin-loss.ts';
