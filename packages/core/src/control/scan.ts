/** scan: a function that is recorded once and run for every slice of a sequence, with values carried from step to step. */
import { registerLoops } from '../runtime/run.ts';
import { runLoops } from '../runtime/loops.ts';
import { leavesOf, mapTree, type TensorTree } from '../autodiff/walk.ts';
import type { Node } from '../graph/node.ts';
import { onPlaceholders, placeholder } from '../graph/placeholder.ts';
import * as p from '../graph/primitives.ts';
import { callUser, compose, endRecording, pauseRecording, startRecording, watchNode } from '../graph/scope.ts';
import { isFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkFunction, checkNames, shown } from '@polygrad/compiler/shape/options';
import { isList, say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { called } from '../tensor/scope.ts';
import { checkCarry, eachOf, lastOf, makeLoop } from './body.ts';
import { rules } from './derivatives.ts';

const op = 'scan';

/** Options of `scan`. */
export interface ScanOptions {
  /** Steps. Needed where xs is null; else it must be the length of xs. */
  readonly length?: number;
  /** Begin with the last slice. Slice t of the results still belongs to slice t of xs. Default false. */
  readonly reverse?: boolean;
  /** Gradients compute each step again from the values carried, and keep nothing else of it: less memory, more work. Default false. */
  readonly recompute?: boolean;
}

/** How many steps there are. */
function lengthOf(sources: readonly Node[], given: number | undefined): number {
  if (given !== undefined && !(Number.isInteger(given) && given >= 0 && given < 2 ** 31))
    throw new ArgumentError(op, say`bad length: ${shown(given)}; must be an integer from 0 to 2^31 - 1`);
  let length = given;
  for (const node of sources) {
    const [count] = node.shape;
    if (count === undefined)
      throw new ShapeError(
        op,
        'xs holds a tensor without axes: its first axis is the steps; let the function close over what is the same at each step',
        [node.shape],
      );
    if (length !== undefined && count !== length) {
      const other =
        given === undefined ? say`${length} of ${showShape(sources[0]!.shape)}` : say`${given} in options.length`;
      throw new ShapeError(
        op,
        say`lengths differ: ${other} and ${count} of ${showShape(node.shape)}; give all of xs the same first axis`,
        [sources[0]!.shape, node.shape],
      );
    }
    length = count;
  }
  if (length === undefined) throw new ArgumentError(op, 'no length: xs is null or empty; give options.length');
  return length;
}

/** What a body returned. */
function partsOf(result: unknown): readonly [unknown, unknown] {
  if (!isList(result) || result.length !== 2)
    throw new ArgumentError(
      op,
      say`the function returned ${isList(result) ? say`a list of ${result.length}` : shown(result)}: it must return [carry, y], with null for y where there is nothing to collect`,
    );
  return [result[0], result[1] ?? null];
}

/**
 * A loop on the device: calls `f(carry, x)` for each slice of `xs` along the first axis. What it returns first is carried to the next step, what
 * it returns second is stacked. Source: JAX `lax.scan`.
 *
 * `f` is recorded once and planned once, whatever the length; a new length makes no new plan of it. Gradients of any order, forward and
 * backward, are loops again; `vmap` makes a loop over batches. Tensors that `f` uses from outside get gradients too. Inside `f` tensors have no
 * value: they cannot be read, kept or disposed, and control flow cannot depend on them.
 *
 * @param f from the carry and a slice to `[carry, y]`; the carry keeps its structure, shapes and dtypes; y may be null
 * @param init the carry before the first step: a tensor, or arrays and plain objects of such
 * @param xs what is sliced, in the same forms; null where steps are given nothing
 * @param options length, where xs is null; reverse; recompute
 * @returns the carry after the last step, and the results of all steps, stacked along a new first axis
 * @throws ShapeError if lengths differ or the carry changes its shape, DTypeError if it changes its dtype, ArgumentError if `f` returns
 *   anything else
 *
 * @example
 * const [total, sums] = scan((sum: Tensor, x: Tensor) => [sum.add(x), sum.add(x)], zeros([]), tensor([1, 2, 3]));
 * // total is 6, sums are [1, 3, 6]
 */
export function scan<C extends TensorTree, X extends TensorTree | null, Y extends TensorTree | null>(
  f: (carry: C, x: X) => readonly [C, Y],
  init: C,
  xs: X,
  options: ScanOptions = {},
): [carry: C, ys: Y] {
  checkNames(op, options, 'length reverse? recompute?');
  checkFunction(op, f);
  registerLoops(runLoops);
  return compose(op, () => {
    const { reverse = false, recompute = false } = options;
    const starts = leavesOf(op, init).map((t) => nodeOf(t, op));
    const sources = xs === null ? [] : leavesOf(op, xs).map((t) => nodeOf(t, op));
    const length = lengthOf(sources, options.length);
    const carries = starts.map(({ shape, dtype }) => placeholder(shape, dtype, 'the carry inside scan'));
    const items = sources.map(({ shape, dtype }) => placeholder(shape.slice(1), dtype, 'a slice inside scan'));

    const recording = startRecording(op, false);
    try {
      for (const node of [...carries, ...items]) if (isFloat(node.dtype)) watchNode(recording, node);
      const bound = [...carries, ...items].map(wrap);
      let next = 0;
      const carry = mapTree(op, init, () => bound[next++]!);
      const x = xs === null ? null : mapTree(op, xs, () => bound[next++]!);
      const result = onPlaceholders(() => callUser(() => called(op, f, carry as C, x as X)));
      pauseRecording(recording);
      if (bound.some((t) => t.disposed))
        throw new ArgumentError(
          op,
          'the function disposed its carry or slice: every step uses the same recording; leave them, they end with the function',
        );
      const [end, ys] = partsOf(result);
      checkCarry(op, carry, end);
      const ends = leavesOf(op, end).map((t) => nodeOf(t, op));
      const each = ys === null ? [] : leavesOf(op, ys).map((t) => nodeOf(t, op));
      const results =
        length === 0
          ? [...starts.map(p.identity), ...each.map(({ shape, dtype }) => p.constant(0, dtype, [0, ...shape]))]
          : looped();
      const tensors = results.map(wrap);
      let at = 0;
      const last = mapTree(op, end, () => tensors[at++]!);
      return [last as C, (ys === null ? null : mapTree(op, ys, () => tensors[at++]!)) as Y];

      function looped(): Node[] {
        const parts = { carries, items, next: ends, starts, sources, each, length, reverse, recompute, rules };
        const loop = makeLoop(parts);
        return [...carries.map((_, i) => lastOf(loop, i)), ...each.map((node) => eachOf(loop, node))];
      }
    } finally {
      endRecording(recording);
    }
  });
}
