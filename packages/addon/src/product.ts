/** Products as the driver takes them (native/product.h; of convolutions native/libraries/convolution.h of the CUDA engine). */
import type { ConvolutionProduct, DType, MatrixProduct, Product } from '@polygrad/core/kernel';

/** The kinds of commands for products. */
const kinds: Readonly<Record<Product['kind'], number>> = { matrices: 4, convolution: 5 };

/** A number for each tensor of a product. */
export interface OfEach {
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** What factors and results may be, by the number the driver knows it by (native/product.h). */
const formats: readonly (readonly [factors: DType, result: DType])[] = [
  ['float32', 'float32'],
  ['float64', 'float64'],
  ['float16', 'float16'],
  ['float16', 'float32'],
  ['bfloat16', 'bfloat16'],
  ['bfloat16', 'float32'],
];

/** Bytes of an element that factors and results may be. */
export const bytesOf = (dtype: DType): number => (dtype === 'float64' ? 8 : dtype === 'float32' ? 4 : 2);

/** A command: its kind, and its cells. */
export interface ProductCommand {
  readonly kind: number;
  readonly cells: readonly number[];
}

/** The command of a product: numbers of the buffers, and where bindings begin in them, in elements. */
export function productCommand(product: Product, buffers: OfEach, starts: OfEach): ProductCommand {
  const { dtype, result } = product;
  const format = formats.findIndex(([factors, kept]) => factors === dtype && kept === result);
  const cells =
    product.kind === 'matrices' ? matrixCells(product, buffers, starts) : convolutionCells(product, buffers, starts);
  return { kind: kinds[product.kind], cells: [format, ...cells] };
}

const operands = ['a', 'b', 'c'] as const;

function matrixCells(product: MatrixProduct, buffers: OfEach, starts: OfEach): number[] {
  const { m, n, k, batch } = product;
  const cells: number[] = [m, n, k, batch];
  for (const name of operands) {
    const { offset, stride, distance, transposed } = product[name];
    cells.push(buffers[name], starts[name] + offset, stride, distance, transposed ? 1 : 0);
  }
  return cells;
}

/** The passes of a convolution, by their numbers. */
const passes: readonly ConvolutionProduct['pass'][] = ['forward', 'input', 'kernel'];

function convolutionCells(product: ConvolutionProduct, buffers: OfEach, starts: OfEach): number[] {
  const { pass, images, groups, channels, features, size, kernel, positions, stride, padding, dilation } = product;
  const sizes = [images, groups, channels, features, size, kernel, positions, stride, padding, dilation].flat();
  const cells = [passes.indexOf(pass), ...sizes, product.flipped ? 1 : 0];
  for (const name of operands) {
    const { offset, strides } = product[name];
    cells.push(buffers[name], starts[name] + offset, ...strides);
  }
  return cells;
}
