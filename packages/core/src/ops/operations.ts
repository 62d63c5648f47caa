/**
 * The families of operations: all that their files export is public, and every function there is a method of Tensors too.
 *
 * functions.ts passes it on, and methods/ makes methods of it. What is of no tensor (`zeros`, `concat`, `where`) is in other files, which
 * functions.ts names. Families that are alike stand side by side, which also makes bundles with all of them a little smaller.
 */
export * from './elementwise/arithmetic.ts';
export * from './elementwise/logic.ts';
export * from './elementwise/transcendental.ts';
export * from './special/gamma.ts';
export * from './elementwise/activation.ts';
export * from './normalization/normalization.ts';
export * from './reduction/reduction.ts';
export * from './reduction/cumulative.ts';
export * from './order/sorting.ts';
export * from './order/searching.ts';
export * from './products/matmul.ts';
export * from './products/distance.ts';
export * from './movement/shape.ts';
export * from './movement/slicing.ts';
export * from './movement/diagonals.ts';
export * from './indexing/indexing.ts';
export * from './indexing/scattering.ts';
export * from './images/patches.ts';
export * from './attention/attention.ts';
export * from './convolution/convolution.ts';
export * from './products/graph-convolution.ts';
export * from './pooling/pooling.ts';
export * from './pooling/max-unpooling.ts';
export * from './pooling/adaptive-pooling.ts';
export * from './images/resampling.ts';
export * from './losses/loss.ts';
export * from './losses/class-loss.ts';
export * from './losses/margin-loss.ts';
