/** Methods of Tensors: convolutions. Details, shapes and errors are told with the functions. */
import { type ConvTransposeOptions, convTranspose1d, convTranspose2d, convTranspose3d } from '../ops/conv-transpose.ts';
import { type ConvOptions, conv1d, conv2d, conv3d, depthwiseConv2d } from '../ops/convolution.ts';
import { type EdgeList, type GraphConvOptions, graphConv } from '../ops/graph-convolution.ts';
import { type LocalConvOptions, locallyConnectedConv2d } from '../ops/local-convolution.ts';
import type { Tensor } from '../tensor/types.ts';

export interface ConvolutionMethods {
  /** Products of a kernel with every window along one axis. */
  conv1d(kernel: Tensor, options?: ConvOptions): Tensor;
  /** Products of a kernel with every window of an image. */
  conv2d(kernel: Tensor, options?: ConvOptions): Tensor;
  /** Products of a kernel with every window of a volume. */
  conv3d(kernel: Tensor, options?: ConvOptions): Tensor;
  /** A conv2d of every channel by itself. */
  depthwiseConv2d(kernel: Tensor, options?: Omit<ConvOptions, 'groups'>): Tensor;
  /** A conv2d with a kernel of its own at every position. */
  locallyConnectedConv2d(kernel: Tensor, options?: LocalConvOptions): Tensor;
  /** The gradient of conv1d with respect to its input, as an operation. */
  convTranspose1d(kernel: Tensor, options?: ConvTransposeOptions): Tensor;
  /** The gradient of conv2d with respect to its input, as an operation. */
  convTranspose2d(kernel: Tensor, options?: ConvTransposeOptions): Tensor;
  /** The gradient of conv3d with respect to its input, as an operation. */
  convTranspose3d(kernel: Tensor, options?: ConvTransposeOptions): Tensor;
  /** Features of nodes summed over their neighbours, times a weight. */
  graphConv(adjacency: Tensor | EdgeList, weight: Tensor, options?: GraphConvOptions): Tensor;
}

export const convolutionMethods: ConvolutionMethods & ThisType<Tensor> = {
  conv1d(kernel, options) {
    return conv1d(this, kernel, options);
  },
  conv2d(kernel, options) {
    return conv2d(this, kernel, options);
  },
  conv3d(kernel, options) {
    return conv3d(this, kernel, options);
  },
  depthwiseConv2d(kernel, options) {
    return depthwiseConv2d(this, kernel, options);
  },
  locallyConnectedConv2d(kernel, options) {
    return locallyConnectedConv2d(this, kernel, options);
  },
  convTranspose1d(kernel, options) {
    return convTranspose1d(this, kernel, options);
  },
  convTranspose2d(kernel, options) {
    return convTranspose2d(this, kernel, options);
  },
  convTranspose3d(kernel, options) {
    return convTranspose3d(this, kernel, options);
  },
  graphConv(adjacency, weight, options) {
    return graphConv(this, adjacency, weight, options);
  },
};
