/**
 * Connectionist temporal classification: the likelihood of a sequence of labels under frames that are longer and not aligned with it.
 *
 * The sum over all alignments goes through the frames in a `scan`, on the device, as logarithms. Gradients are those of that loop.
 */
import {
  arange,
  broadcastTo,
  cast,
  clip,
  concat,
  type DType,
  equal,
  full,
  less,
  logicalAnd,
  logicalOr,
  logSumExp,
  maximum,
  mean,
  narrow,
  notEqual,
  type Reduction,
  reshape,
  scan,
  select,
  stack,
  sum,
  takeAlongAxis,
  type Tensor,
  tensor,
  where,
} from '@polygrad/core/functions';
import { checkFits, checkInteger, checkOptions, checkTensor, NnError } from '../errors.ts';

/** Options of `ctcLoss`. */
export interface CtcOptions {
  /** The blank class, which means no label (default 0). */
  readonly blank?: number;
  /** 'mean' (default) divides each loss by the number of labels first; 'sum', or 'none' for the loss of each sequence. */
  readonly reduction?: Reduction;
  /** Count sequences with more labels than frames can have as 0, not as infinity (default false). Either way they have no gradient. */
  readonly zeroInfinity?: boolean;
}

/** The logarithm of nothing: finite, so that differences are no NaN. */
const never = -1e30;

/** How many of each sequence count, as a tensor [N]. */
function readLengths(
  name: string,
  lengths: Tensor | readonly number[],
  batch: number,
  range: [number, number],
): Tensor {
  if (Array.isArray(lengths)) {
    checkFits('ctcLoss', name, lengths, lengths.length === batch, `a list of ${batch}: one for each sequence`);
    for (const length of lengths as readonly number[]) checkInteger('ctcLoss', name, length, ...range);
    return tensor([...(lengths as readonly number[])], { dtype: 'int32' });
  }
  const given = lengths as Tensor;
  checkTensor('ctcLoss', name, given);
  if (given.shape.join() !== String(batch) || !given.dtype.includes('int'))
    throw new NnError(
      'ctcLoss',
      `${name} are ${given.dtype} [${given.shape.join(', ')}]; they must be integers [${batch}]`,
      [name],
    );
  return cast(given, 'int32');
}

/** Moves the places of a row by `count`; what comes in has no likelihood. */
function later(rows: Tensor, count: number, filler: number): Tensor {
  const [batch, length] = rows.shape as [number, number];
  return concat([full([batch, count], filler, { dtype: rows.dtype }), narrow(rows, 1, 0, length - count)], 1);
}

/**
 * Minus the log likelihood of sequences of labels, summed over all alignments with the frames. Source: Graves et al., "Connectionist temporal
 * classification" (2006); PyTorch `ctc_loss`.
 *
 * @param logs log-probabilities of each frame, floats [T, N, C]
 * @param targets labels, integers [N, S] with S at least 1, none of them the blank; what is behind a sequence's length does not count
 * @param inputLengths how many frames of each sequence count, 1 to T: a list, or integers [N]
 * @param targetLengths how many labels of each sequence count, 0 to S: a list, or integers [N]
 * @param options blank (0), reduction, zeroInfinity (false)
 * @returns one number, or the losses [N]; infinity where the labels do not fit the frames
 * @throws NnError where shapes or lengths do not fit
 * @example
 * const logs = logSoftmax(zeros([4, 1, 3]));
 * const targets = tensor([[1, 2]], { dtype: 'int32' });
 * ctcLoss(logs, targets, [4], [2], { reduction: 'sum' }); // about 1.6864
 */
export function ctcLoss(
  logs: Tensor,
  targets: Tensor,
  inputLengths: Tensor | readonly number[],
  targetLengths: Tensor | readonly number[],
  options: CtcOptions = {},
): Tensor {
  checkOptions('ctcLoss', options, 'blank reduction zeroInfinity?');
  const { blank = 0, reduction = 'mean', zeroInfinity = false } = options;
  checkTensor('ctcLoss', 'logs', logs);
  checkTensor('ctcLoss', 'targets', targets);
  const [frames, batch, classes] = logs.shape as [number, number, number];
  const labels = targets.shape[1]!;
  if (
    logs.ndim !== 3 ||
    targets.ndim !== 2 ||
    targets.shape[0] !== batch ||
    frames < 1 ||
    labels < 1 ||
    !targets.dtype.includes('int')
  )
    throw new NnError(
      'ctcLoss',
      `logs [${logs.shape.join(', ')}] and targets ${targets.dtype} [${targets.shape.join(', ')}] do not fit; needs [T, N, C] and integers [N, S]`,
      ['logs', 'targets'],
    );
  checkInteger('ctcLoss', 'blank', blank, 0, classes - 1);
  const known = reduction === 'mean' || reduction === 'sum' || reduction === 'none';
  checkFits('ctcLoss', 'reduction', reduction, known, "'mean', 'sum' or 'none'");
  const running = readLengths('inputLengths', inputLengths, batch, [1, frames]);
  const counts = readLengths('targetLengths', targetLengths, batch, [0, labels]);

  // A blank before, between and behind the labels: places 0 .. 2 S.
  const places = 2 * labels + 1;
  const blanks = full([batch, labels], blank, { dtype: 'int32' });
  const labelled = clip(cast(targets, 'int32'), 0, classes - 1);
  const pairs = reshape(stack([blanks, labelled], 2), [batch, 2 * labels]);
  const classOf = concat([pairs, narrow(blanks, 1, 0, 1)], 1);
  // The blank between two labels may be left out where they differ.
  const skips = logicalAnd(notEqual(classOf, blank), notEqual(classOf, later(classOf, 2, blank)));

  const dtype: DType = logs.dtype === 'float64' ? 'float64' : 'float32';
  const wide = maximum(cast(logs, dtype), never);
  const chances = takeAlongAxis(wide, broadcastTo(reshape(classOf, [1, batch, places]), [frames, batch, places]), 2);
  const place = arange(places, { dtype: 'int32' });
  const first = where(less(place, 2), select(chances, 0, 0), never);
  let alphas = first;
  if (frames > 1) {
    const step = ([before]: readonly Tensor[], [chance, isRunning]: readonly Tensor[]): [Tensor[], Tensor[]] => {
      const alpha = before!;
      const ways = [alpha, later(alpha, 1, never), where(skips, later(alpha, 2, never), never)];
      const next = maximum(logSumExp(stack(ways), 0).add(chance!), never);
      return [[where(isRunning!, next, alpha)], []];
    };
    const time = reshape(arange(frames, { dtype: 'int32' }), [frames, 1, 1]);
    const isRunning = less(time, reshape(running, [1, batch, 1]));
    const rest = [chances, isRunning].map((t) => narrow(t, 0, 1, frames - 1));
    [[alphas]] = scan(step, [first], rest) as unknown as [[Tensor]];
  }
  // The last label, or the blank behind it.
  const last = reshape(counts.mul(2), [batch, 1]);
  const isEnd = logicalOr(equal(place, last), equal(place, last.sub(1)));
  const total = logSumExp(where(isEnd, alphas, never), 1);
  const impossible = less(total, never / 2);
  const losses = where(impossible, zeroInfinity ? 0 : Number.POSITIVE_INFINITY, total.mul(-1));
  if (reduction === 'none') return losses;
  return reduction === 'sum' ? sum(losses) : mean(losses.div(cast(maximum(counts, 1), dtype)));
}
