/** whileLoop: steps as long as a condition on their values holds, forward only. */
import { GradientError } from '../autodiff/backward.ts';
import { leavesOf, mapTree, type TensorTree } from '../autodiff/walk.ts';
import { customRules } from '../graph/definition.ts';
import { dropUse, holdUse, type Node } from '../graph/node.ts';
import { identity, makeNode } from '../graph/primitives.ts';
import { beginOp, collecting, markAll } from '../graph/scope.ts';
import { graph } from '../graph/state.ts';
import { noGrad } from '../autodiff/custom-gradient.ts';
import { ArgumentError, OperationError } from '@polygrad/compiler/shape/errors';
import { checkFunction, checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import { called, dispose, scope } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import { checkCarry } from './body.ts';

const op = 'whileLoop';

/** Options of `whileLoop`. */
export interface WhileLoopOptions {
  /** Stop after so many steps, whatever the condition says. Left out, a loop that has not ended after 1000 steps is an error. */
  readonly maxSteps?: number;
}

/** Whether the condition holds for the carry; the tensor that says so is read and disposed. */
async function holds<C>(condition: (carry: C) => Tensor | boolean, carry: C): Promise<boolean> {
  const answer = scope(() => noGrad(() => called(op, condition, carry)));
  if (typeof answer === 'boolean') return answer;
  if (!isTensor(answer) || sizeOf(answer.shape) !== 1) {
    const text = shown(answer);
    dispose(answer);
    throw new ArgumentError(
      op,
      say`the condition returned ${text}: it must return a tensor with one element, or true or false`,
    );
  }
  const [value] = await answer.data();
  answer.dispose();
  return Boolean(value);
}

/**
 * Calls `body` again and again, as long as `condition` holds for what it returned last; how many steps that are is known only as it goes. Each step
 * reads the condition, so it waits for the device: where the number of steps is known, `scan` is faster.
 *
 * The functions are called once a step, in scopes of their own; steps of the same shapes share their plans. There is no gradient through it:
 * the result says so when one is asked for.
 *
 * @param condition from the carry to a tensor with one element, or to true or false
 * @param body from the carry to the next one, in the same structure, shapes and dtypes
 * @param init the carry before the first step: a tensor, or arrays and plain objects of such; it is not disposed
 * @param options maxSteps
 * @returns a promise of the carry for which the condition holds no longer
 * @throws ShapeError or DTypeError if the carry changes, ArgumentError for other conditions, OperationError for more than 1000 steps without maxSteps
 *
 * @example
 * const halved = await whileLoop((x: Tensor) => x.greater(1), (x: Tensor) => x.div(2), tensor(100)); // 0.78125
 */
export async function whileLoop<C extends TensorTree>(
  condition: (carry: C) => Tensor | boolean,
  body: (carry: C) => C,
  init: C,
  options: WhileLoopOptions = {},
): Promise<C> {
  checkNames(op, options, 'maxSteps');
  checkFunction(op, condition);
  checkFunction(op, body);
  const { maxSteps = mostUnasked + 1 } = options;
  if (!(typeof maxSteps === 'number' && maxSteps >= 0))
    throw new ArgumentError(op, say`bad maxSteps: ${shown(maxSteps)}; must be 0 or more`);
  const first = leavesOf(op, init);
  const { newest } = graph;
  const tracked = new Set<Node>();
  // Held until the loop has ended: others may let them go between its steps.
  const track = (node: Node): void => {
    if (!isTracked(node) || node.id > newest || tracked.has(node)) return;
    holdUse(node);
    tracked.add(node);
  };
  for (const t of first) track(nodeOf(t, op));
  let carry = init;
  const letGo = (tree: unknown, but: unknown = null): void => {
    const kept = new Set<unknown>(first);
    markAll(but, (t) => kept.add(t));
    markAll(tree, (t) => {
      if (!kept.has(t)) t.dispose();
    });
  };
  try {
    for (let step = 0; step < maxSteps && (await holds(condition, carry)); step++) {
      if (step === mostUnasked && options.maxSteps === undefined)
        throw new OperationError(
          op,
          say`the condition still holds after ${mostUnasked} steps; give options.maxSteps if it may take longer, Infinity for no limit`,
        );
      const before = carry;
      carry = scope(() =>
        collecting(
          ({ src }) => src.forEach(track),
          () => noGrad(() => called(op, body, before)),
        ),
      );
      try {
        checkCarry(op, before, carry);
      } finally {
        letGo(before, carry);
      }
    }
    beginOp(op);
    return mapTree(op, carry, (t) => wrap(ended(nodeOf(t, op), [...tracked]))) as C;
  } finally {
    for (const node of tracked) dropUse(node);
    letGo(carry);
  }
}

/** Most steps of a loop, by default. */
const mostUnasked = 1000;

const isTracked = (node: Node): boolean => node.requiresGrad || node.pins !== 0;

/** The value of a node, without a gradient: asking for one is an error. */
function ended(node: Node, tracked: readonly Node[]): Node {
  if (tracked.length === 0) return identity(node);
  const result: Node = makeNode('stopGradient', [node, ...tracked], null);
  customRules.set(result, () => {
    throw new GradientError(
      op,
      'no gradient flows through it: how many steps there are depends on values; use scan with a length, or detach() the result',
    );
  });
  return result;
}
