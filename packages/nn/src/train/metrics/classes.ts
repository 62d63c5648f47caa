/** Metrics of classes, from the confusion matrix, which is counted on the device. */
import {
  argMax,
  cast,
  equal,
  gather,
  greater,
  greaterEqual,
  less,
  logicalAnd,
  notEqual,
  arange,
  reshape,
  scatterAdd,
  sum,
  type Tensor,
  where,
  zeros,
} from '@polygrad/core/functions';
import { checkInteger, checkNumber, checkOptions, NnError } from '../../errors.ts';
import type { Metric } from '../meter.ts';
import type { SummedMetric } from './summed.ts';

/** Options of `confusionMatrix` and `meanIoU`. */
export interface ClassesOptions {
  /** How many classes there are. Default 2. */
  readonly classes?: number;
  /** With two classes and one score for each row: scores above are class 1. Default 0.5; 0 for logits. */
  readonly threshold?: number;
  /** A target that does not count. Targets outside 0 .. classes - 1 never do. */
  readonly ignoreIndex?: number;
}

/** Options of `precision`, `recall` and `f1Score`. */
export interface ScoreOptions extends ClassesOptions {
  /**
   * 'binary', the default with two classes, is the score of class 1. 'macro', the default with more, is the mean over the classes. 'weighted' is the
   * mean by how often each class is a target. 'micro' is that of all rows counted together: the accuracy.
   */
  readonly average?: 'binary' | 'macro' | 'micro' | 'weighted';
  /** The score instead of a division by zero, as for a class that was never predicted. Default 0. */
  readonly zeroDivision?: number;
}

const averages = ['binary', 'macro', 'micro', 'weighted'];

interface Classes {
  readonly op: string;
  readonly classes: number;
  readonly threshold: number;
  readonly ignoreIndex: number | undefined;
}

function readClasses(op: string, { classes = 2, threshold = 0.5, ignoreIndex }: ClassesOptions): Classes {
  // The matrix has classes x classes counts.
  checkInteger(op, 'classes', classes, 2, 16_384);
  checkNumber(op, 'threshold', threshold);
  if (ignoreIndex !== undefined) checkInteger(op, 'ignoreIndex', ignoreIndex, Number.MIN_SAFE_INTEGER);
  return { op, classes, threshold, ignoreIndex };
}

/** The class of each target that was predicted, flat: where the greatest score is, or whether the only score is above the threshold. */
function predictedClasses(prediction: Tensor, target: Tensor, { op, classes, threshold }: Classes): Tensor {
  const [from, to] = [prediction.shape, target.shape];
  const isOne = classes === 2 && (from.length === to.length || from[1] === 1);
  const rest = from.length === to.length ? from : [from[0], ...from.slice(2)];
  if (rest.length !== to.length || rest.some((n, i) => n !== to[i]) || (!isOne && from[1] !== classes)) {
    const forms = `[rows, ${classes}, ...] with targets [rows, ...]${classes === 2 ? ', or scores of the shape of the targets' : ''}`;
    throw new NnError(op, `predictions [${from}] do not fit targets [${to}]; must be ${forms}`, ['classes']);
  }
  const found = isOne ? cast(greater(prediction, threshold), 'int32') : cast(argMax(prediction, { axis: 1 }), 'int32');
  return reshape(found, [-1]);
}

/** Counts of [target, prediction], flat, of one batch. */
function countsOf(prediction: Tensor, target: Tensor, classes: Classes): Tensor {
  const { classes: n, ignoreIndex } = classes;
  const found = predictedClasses(prediction, target, classes);
  const wanted = reshape(cast(target, 'int32'), [-1]);
  let counts = logicalAnd(greaterEqual(wanted, 0), less(wanted, n));
  if (ignoreIndex !== undefined) counts = logicalAnd(counts, notEqual(wanted, ignoreIndex));
  const at = where(counts, wanted.mul(n).add(found), zeros(wanted.shape, { dtype: 'int32' }));
  return scatterAdd(zeros([n * n], { dtype: 'int32' }), at, cast(counts, 'int32'), 0);
}

function ofMatrix<Value>(
  classes: Classes,
  value: (rows: readonly (readonly number[])[]) => Value,
): SummedMetric<Value> {
  const n = classes.classes;
  return {
    shape: [n * n],
    dtype: 'int32',
    sums: (prediction, target) => countsOf(prediction, target, classes),
    value: (total) => value(Array.from({ length: n }, (_, i) => total.slice(i * n, (i + 1) * n))),
  };
}

/** Of each class: rows that are it and were predicted so, rows predicted so, rows that are it. */
function hits(matrix: readonly (readonly number[])[]): { right: number; predicted: number; targets: number }[] {
  return matrix.map((row, i) => ({
    right: row[i]!,
    predicted: matrix.reduce((all, other) => all + other[i]!, 0),
    targets: row.reduce((all, n) => all + n, 0),
  }));
}

type Hits = ReturnType<typeof hits>[number];

function scoreOf(
  op: string,
  options: ScoreOptions,
  parts: (hits: Hits) => readonly [over: number, under: number],
): SummedMetric {
  checkOptions(op, options, 'classes# threshold# ignoreIndex# average zeroDivision');
  const classes = readClasses(op, options);
  const { average = classes.classes === 2 ? 'binary' : 'macro', zeroDivision = 0 } = options;
  if (!averages.includes(average) || (average === 'binary' && classes.classes !== 2)) {
    const text = `bad average: ${average} of ${classes.classes} classes; must be macro, micro or weighted, or binary with 2 classes`;
    throw new NnError(op, text, ['average']);
  }
  const ratio = (of: Hits): number => {
    const [over, under] = parts(of);
    return under === 0 ? zeroDivision : over / under;
  };
  return ofMatrix(classes, (matrix) => {
    const each = hits(matrix);
    if (average === 'binary') return ratio(each[1]!);
    const add = (key: keyof Hits): number => each.reduce((all, of) => all + of[key], 0);
    if (average === 'micro')
      return ratio({ right: add('right'), predicted: add('predicted'), targets: add('targets') });
    const weights = each.map(({ targets }) => (average === 'macro' ? 1 : targets));
    const total = weights.reduce((all, n) => all + n, 0);
    return total === 0 ? zeroDivision : each.reduce((all, of, i) => all + ratio(of) * weights[i]!, 0) / total;
  });
}

/**
 * How often each class was predicted as each: rows are targets, columns predictions. Counted over all batches, for `Tally`.
 *
 * @param options classes (2), threshold (0.5), ignoreIndex
 * @returns a metric of [classes][classes] counts
 * @throws NnError for options that do not fit, and later for predictions that do not fit the targets
 * @example
 * const matrix = new Tally(confusionMatrix({ classes: 3 }));
 * matrix.add(tensor([[5, 1, 0], [0, 1, 2]]), tensor([0, 1], { dtype: 'int32' }));
 * await matrix.read(); // [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
 */
export function confusionMatrix(options: ClassesOptions = {}): SummedMetric<number[][]> {
  checkOptions('confusionMatrix', options, 'classes# threshold# ignoreIndex#');
  return ofMatrix(readClasses('confusionMatrix', options), (rows) => rows.map((row) => [...row]));
}

/**
 * Which share of the rows predicted as a class are of it. Counted over all batches.
 *
 * @param options classes (2), average, threshold (0.5), ignoreIndex, zeroDivision (0)
 * @returns a metric for `fit`, `evaluate` and `Tally`
 * @throws NnError for options that do not fit, and later for predictions that do not fit the targets
 * @example
 * const tally = new Tally(precision());
 * tally.add(tensor([0.9, 0.8, 0.3]), tensor([1, 0, 1], { dtype: 'int32' }));
 * await tally.read(); // 0.5
 */
export function precision(options: ScoreOptions = {}): SummedMetric {
  return scoreOf('precision', options, ({ right, predicted }) => [right, predicted]);
}

/**
 * Which share of the rows of a class were predicted as it. Counted over all batches.
 *
 * @param options classes (2), average, threshold (0.5), ignoreIndex, zeroDivision (0)
 * @returns a metric for `fit`, `evaluate` and `Tally`
 * @throws NnError for options that do not fit, and later for predictions that do not fit the targets
 * @example
 * const tally = new Tally(recall());
 * tally.add(tensor([0.9, 0.8, 0.3]), tensor([1, 1, 1], { dtype: 'int32' }));
 * await tally.read(); // 0.6666666666666666
 */
export function recall(options: ScoreOptions = {}): SummedMetric {
  return scoreOf('recall', options, ({ right, targets }) => [right, targets]);
}

/**
 * Harmonic mean of precision and recall: 2 right / (predicted + targets). Counted over all batches.
 *
 * @param options classes (2), average, threshold (0.5), ignoreIndex, zeroDivision (0)
 * @returns a metric for `fit`, `evaluate` and `Tally`
 * @throws NnError for options that do not fit, and later for predictions that do not fit the targets
 * @example
 * const tally = new Tally(f1Score());
 * tally.add(tensor([0.9, 0.8, 0.3]), tensor([1, 0, 1], { dtype: 'int32' }));
 * await tally.read(); // 0.5
 */
export function f1Score(options: ScoreOptions = {}): SummedMetric {
  return scoreOf('f1Score', options, ({ right, predicted, targets }) => [2 * right, predicted + targets]);
}

/**
 * Mean over the classes of the intersection of predictions and targets over their union (Jaccard index), for segmentation. Classes
 * that are neither predicted nor a target do not count; NaN if none is.
 *
 * @param options classes (2), threshold (0.5), ignoreIndex
 * @returns a metric for `fit`, `evaluate` and `Tally`; predictions [rows, classes, ...], targets [rows, ...]
 * @throws NnError for options that do not fit, and later for predictions that do not fit the targets
 * @example
 * const tally = new Tally(meanIoU());
 * tally.add(tensor([[0.9, 0.8], [0.3, 0.1]]), tensor([[1, 0], [0, 0]], { dtype: 'int32' }));
 * await tally.read(); // 0.5833333333333333
 */
export function meanIoU(options: ClassesOptions = {}): SummedMetric {
  checkOptions('meanIoU', options, 'classes# threshold# ignoreIndex#');
  return ofMatrix(readClasses('meanIoU', options), (matrix) => {
    const met = hits(matrix).filter(({ predicted, targets }) => predicted + targets > 0);
    return (
      met.reduce((all, { right, predicted, targets }) => all + right / (predicted + targets - right), 0) / met.length
    );
  });
}

/**
 * 1 where the target class [rows] is among the k greatest predictions [rows, classes], else 0. Of equal predictions the first counts as greater.
 *
 * @param k how many, at least 1
 * @returns a metric that is a mean over rows
 * @throws NnError for a bad k
 * @example
 * topKAccuracy(2)(tensor([[3, 2, 1], [3, 2, 1]]), tensor([1, 2], { dtype: 'int32' })); // [1, 0]
 */
export function topKAccuracy(k: number): Metric {
  checkInteger('topKAccuracy', 'k', k, 1);
  return (prediction, target) => {
    const [rows, classes = 0] = prediction.shape;
    if (prediction.shape.length !== 2 || target.shape.length !== 1 || target.shape[0] !== rows) {
      const text = `predictions [${prediction.shape}] do not fit targets [${target.shape}]; must be [rows, classes] with targets [rows]`;
      throw new NnError('topKAccuracy', text);
    }
    const at = reshape(cast(target, 'int32'), [-1, 1]);
    const score = gather(prediction, at, 1);
    const isEarlier = less(arange(0, classes, { dtype: 'int32' }), at);
    const isBefore = where(
      isEarlier,
      cast(greaterEqual(prediction, score), 'int32'),
      cast(greater(prediction, score), 'int32'),
    );
    const place = sum(isBefore, { axis: 1 });
    const isNumber = cast(equal(score, score), 'float32');
    return cast(less(place, k), 'float32').mul(reshape(isNumber, [-1]));
  };
}
