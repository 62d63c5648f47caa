/**
 * Entry point @polygrad/core/custom, and `defineKernel`: kernels of users, as functions of tensors.
 *
 * A call finds or makes the form of the kernel for the shapes and dtypes of its inputs (forms.ts). Then it records one node per dtype of the outputs.
 * Forms whose outputs are several of one dtype write them behind each other, and each output is a slice.
 */
import { registerFunctions } from '@polygrad/compiler/arithmetic/decompose/functions';
import type { Node } from '../graph/node.ts';
import { compose } from '../graph/scope.ts';
import * as elementary from '../primitives/elementary.ts';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { DTypeError } from '@polygrad/compiler/shape/dtype';
import { isPlain, say, shown } from '@polygrad/compiler/shape/shown';
import { isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import { weak } from '../tensor/operand.ts';
import type { Tensor } from '../tensor/types.ts';
import { elementwiseForm, type Known, programForm } from './forms.ts';
import {
  type AnyOptions,
  checkOptions,
  type InputRules,
  type Kernel,
  type KernelOptions,
  type Rule,
} from './options.ts';

export type {
  ElementwiseKernelOptions,
  GroupKernelOptions,
  Kernel,
  KernelDTypes,
  KernelGradient,
  KernelGradientContext,
  KernelInputRule,
  KernelOptions,
  KernelOutputRule,
  KernelShape,
  ThreadKernelOptions,
} from './options.ts';
export type {
  KernelCombining,
  KernelContext,
  KernelFold,
  KernelMath,
  KernelPlace,
  KernelState,
  KernelVariable,
} from './context.ts';
export type { KernelIndex, KernelInput, KernelOutput, KernelShared } from './memory.ts';
export { KernelError, type KernelOperand, type KernelValue } from './value.ts';

/** Forms that a kernel keeps; the oldest is forgotten. */
const mostForms = 128;

/**
 * Makes a function of tensors of a kernel that you write yourself, where composed operations are not enough: several passes in one, recurrences,
 * stencils, loops that end early. It runs on every engine. The body is run once for each combination of shapes and dtypes; with the methods of its
 * first argument it writes a program, which is verified, compiled for the device, and kept. What the body closes over is part of the program.
 *
 * No kernel reads or writes outside of its tensors: indices are checked where they are not known to fit. Unwritten elements of outputs are 0.
 * `vmap` gives every example a kernel of its own. How to write kernels: docs/custom-kernels.md.
 *
 * @param options name, form, inputs, outputs, body; gradient
 * @returns a function from a record of inputs to a record of outputs
 * @throws ArgumentError for options that do not fit. Calls throw DTypeError and ShapeError for inputs that do not fit, KernelError for bodies that
 *   break a rule, with their line. They throw GradientError where a gradient is wanted and there is none
 *
 * @example
 * const rowNorm = defineKernel({
 *   name: 'rowNorm',
 *   form: 'groups',
 *   inputs: { x: { dtype: 'float32', rank: 2 } },
 *   outputs: { y: 'x' },
 *   body: (k, { x }, { y }) => {
 *     const [row] = k.index;
 *     const n = x.size(1);
 *     const { squares } = k.fold(n, {
 *       start: { squares: 0 },
 *       step: ({ squares }, i) => ({ squares: squares.add(x.at([row, i]).mul(x.at([row, i]))) }),
 *       combine: (a, b) => ({ squares: a.squares.add(b.squares) }),
 *     });
 *     k.each(n, (i) => y.set([row, i], x.at([row, i]).mul(squares.rsqrt())));
 *   },
 * });
 * rowNorm({ x: tensor([[3, 4]]) }).y; // [[0.6, 0.8]]
 */
export function defineKernel<const I extends InputRules, O extends string>(options: KernelOptions<I, O>): Kernel<I, O> {
  const given = options as unknown as AnyOptions;
  const inputs = checkOptions(given);
  const kernel = { ...given };
  const { name } = kernel;
  const outputs = Object.keys(kernel.outputs);
  const forms = new Map<string, (nodes: readonly Node[]) => Node[]>();
  const formOf = (nodes: readonly Node[]): ((nodes: readonly Node[]) => Node[]) => {
    const key = nodes
      .map(({ dtype, shape }) => `${dtype} ${kernel.form === 'elementwise' ? '' : shape.join()}`)
      .join(';');
    const known = forms.get(key);
    if (known !== undefined) return known;
    const again = (others: readonly Node[]): Node[] => formOf(others)(others);
    const facts: Known = { name, inputs, outputs, gradient: (kernel.gradient ?? null) as Known['gradient'], again };
    const shapes = Object.fromEntries(nodes.map(({ shape, dtype }, i) => [inputs[i]!.name, { shape, dtype }]));
    const made =
      kernel.form === 'elementwise' ? elementwiseForm(kernel, facts, shapes) : programForm(kernel, facts, shapes);
    if (forms.size >= mostForms)
      for (const oldest of forms.keys()) {
        forms.delete(oldest);
        break;
      }
    forms.set(key, made);
    return made;
  };
  return (record) =>
    compose(name, () => {
      bringAll();
      const nodes = nodesOf(name, inputs, record);
      const made = formOf(nodes)(nodes);
      return Object.fromEntries(outputs.map((output, i) => [output, wrap(made[i]!)])) as { [N in O]: Tensor };
    });
}

/** Kernels may use every function. */
function bringAll(): void {
  for (const { functions } of Object.values(elementary)) if (functions !== undefined) registerFunctions(functions);
}

/** The inputs in order, checked. */
function nodesOf(op: string, inputs: readonly Rule[], record: unknown): Node[] {
  if (!isPlain(record))
    throw new ArgumentError(
      op,
      say`inputs are ${shown(record)}: give a record of ${inputs.map((i) => i.name).join(', ')}`,
    );
  const extra = Object.keys(record).find((name) => !inputs.some((i) => i.name === name));
  if (extra !== undefined)
    throw new ArgumentError(op, say`no input is named '${extra}': there are ${inputs.map((i) => i.name).join(', ')}`);
  return inputs.map(({ name, dtypes, rank }) => {
    const value = record[name];
    if (value === undefined) throw new ArgumentError(op, say`input ${name} is left out: give a tensor`);
    if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean')
      return weak(value, dtypes[0]!, true);
    if (!isTensor(value)) throw new ArgumentError(op, say`input ${name} is ${shown(value)}: give a tensor`);
    const node = nodeOf(value, op);
    if (!dtypes.includes(node.dtype))
      throw new DTypeError(
        op,
        say`input ${name} is ${node.dtype}: the kernel takes ${dtypes.join(', ')}; convert with cast()`,
        [node.dtype],
      );
    if (rank !== null && node.shape.length !== rank)
      throw new ShapeError(op, say`input ${name} has shape ${showShape(node.shape)}: the kernel takes rank ${rank}`, [
        node.shape,
      ]);
    return node;
  });
}
