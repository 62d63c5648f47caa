/** Weights of classes for losses, so that rare ones count as much as common ones. */
import { type Tensor, tensor } from '@polygrad/core/functions';
import { checkFits, checkInteger, checkOptions, NnError } from '../errors.ts';

/** Options of `classWeights`. */
export interface ClassWeightsOptions {
  /** Number of classes (default: one more than the greatest label). */
  readonly classes?: number;
}

const op = 'classWeights';

/**
 * Weights that make all classes count the same: rows / (classes * rows of the class), float32 [classes]. A class without rows gets 0. Source:
 * scikit-learn, `compute_class_weight('balanced')`.
 *
 * @param labels the class of each row of the training data, on the host
 * @param options classes
 * @throws NnError for labels that are no classes
 * @example
 * const weight = classWeights([1, 1, 1, 1, 0, 0]);
 * weight; // [1.5, 0.75]
 * crossEntropy(zeros([2, 2]), tensor([0, 1], { dtype: 'int32' }), { weight }).shape; // []
 */
export function classWeights(labels: ArrayLike<number>, options: ClassWeightsOptions = {}): Tensor {
  checkOptions(op, options, 'classes');
  const isList = Array.isArray(labels) || (ArrayBuffer.isView(labels) && !(labels instanceof DataView));
  checkFits(op, 'labels', labels, isList && labels.length > 0, 'a list of class numbers');
  if (options.classes !== undefined) checkInteger(op, 'classes', options.classes, 1, 2 ** 24);
  let greatest = 0;
  for (let row = 0; row < labels.length; row++) {
    const label = labels[row]!;
    checkInteger(op, `labels[${row}]`, label, 0, 2 ** 24 - 1);
    greatest = Math.max(greatest, label);
  }
  const { classes = greatest + 1 } = options;
  if (greatest >= classes)
    throw new NnError(op, `there is a label ${greatest}; with ${classes} classes labels are 0 to ${classes - 1}`, [
      'labels',
    ]);
  const counts = new Float64Array(classes);
  for (let row = 0; row < labels.length; row++) counts[labels[row]!]!++;
  return tensor(Float32Array.from(counts, (count) => (count === 0 ? 0 : labels.length / (classes * count))));
}
