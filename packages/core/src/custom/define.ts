/**
 * `defineKernel`: kernels of users, as functions of tensors.
 *
 * A call finds or makes the form of the kernel for the shapes and dtypes of its inputs: the body is run, and what it wrote is verified. Then it
 * records one node per dtype of the outputs. Forms whose outputs are several of one dtype write them behind each other, and each output is a slice.
 */
import { bringFunctions } from '../arithmetic/decompose/decompose.ts';
import { GradientError } from '../autodiff/backward.ts';
import { vmap } from '../autodiff/vmap.ts';
import type { BatchContext, GradientContext } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';
import { callUser, compose } from '../graph/scope.ts';
import { ProgramBuilder } from '../ir/builder/builder.ts';
import type { Exprs } from '../ir/expr.ts';
import type { KNode } from '../ir/ir.ts';
import { printProgram } from '../ir/print.ts';
import { verifyProgram } from '../ir/verify/verify.ts';
import { customMapPrimitive, type CustomProgram, customProgramPrimitive } from '../primitives/custom.ts';
import * as elementary from '../primitives/elementary.ts';
import { checkShape } from '../shape/axes.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';
import { ArgumentError, DTypeError, ShapeError, showShape } from '../shape/errors.ts';
import { checkFields, numberFrom, oneOf } from '../shape/options.ts';
import { isPlain, say, shown } from '../shape/shown.ts';
import { sameShape, type Shape, sizeOf } from '../shape/view.ts';
import { isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import { weak } from '../tensor/operand.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import { type KernelContext, KernelMath } from './context.ts';
import { checked, fail } from './errors.ts';
import { type Form, hashOf, type ProgramBody, trace, type TracedForm } from './lower.ts';
import type { KernelInput, KernelOutput, OutputPlace } from './memory.ts';
import { type KernelOperand, KernelValue, operandOf, type Scope } from './value.ts';

/** Which dtypes an input takes: one, or one of several. */
export type KernelDTypes = DType | readonly DType[];

/** What an input takes; a rank, where it has one. */
export type KernelInputRule = KernelDTypes | { readonly dtype: KernelDTypes; readonly rank?: number };

/** Shape and dtype of an input in a call, or of an output. */
export interface KernelShape {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

type InputRules = Readonly<Record<string, KernelInputRule>>;
type Given<I> = { readonly [N in keyof I]: KernelShape };

/** What an output is: as an input, or what a function of the shapes and dtypes of the inputs says. */
export type KernelOutputRule<I> = (keyof I & string) | ((inputs: Given<I>) => KernelShape);

/** What the gradient of a kernel is given. */
export interface KernelGradientContext<I, O extends string> {
  readonly inputs: { readonly [N in keyof I]: Tensor };
  readonly outputs: { readonly [N in O]: Tensor };
  /** The gradient of each output, in its shape; zeros where nothing depends on it. */
  readonly grads: { readonly [N in O]: Tensor };
}

/** The gradient of each floating-point input, in its shape; null for zero. */
export type KernelGradient<I, O extends string> = (context: KernelGradientContext<I, O>) => {
  readonly [N in keyof I]?: Tensor | null;
};

interface CommonOptions<I, O extends string> {
  /** A letter, then letters, digits and underscores: it is in messages, profiles and sources of kernels. */
  readonly name: string;
  readonly inputs: I;
  /**
   * The gradient in terms of tensors. Made of differentiable operations, it has derivatives of its own, of every order. Without it the kernel
   * cannot be differentiated.
   */
  readonly gradient?: KernelGradient<I, O>;
}

/** A kernel that makes an element of those of the inputs at the same place. Inputs broadcast. It shares loops with the operations around it. */
export interface ElementwiseKernelOptions<I, O extends string> extends CommonOptions<I, O> {
  readonly form: 'elementwise';
  /** The dtype of each output, or the input whose dtype it has. */
  readonly outputs: { readonly [N in O]: (keyof I & string) | DType };
  /** From the elements of the inputs to those of the outputs; of one output it need be no record. */
  readonly body: (
    k: KernelMath,
    inputs: { readonly [N in keyof I]: KernelValue },
  ) => KernelOperand | { readonly [N in NoInfer<O>]: KernelOperand };
}

interface ProgramOptions<I, O extends string> extends CommonOptions<I, O> {
  /** Shape and dtype of each output. */
  readonly outputs: { readonly [N in O]: KernelOutputRule<I> };
  /** How many threads, or groups, there are along each axis. Default: the shape of the first output; for groups without its last axis. */
  readonly grid?: (inputs: Given<I>) => readonly number[];
  /** Writes the program; see KernelContext. */
  readonly body: (
    k: KernelContext,
    inputs: { readonly [N in keyof I]: KernelInput },
    outputs: { readonly [N in O]: KernelOutput },
  ) => void;
}

/** A kernel of threads that work alone: each is for one element of the grid. */
export interface ThreadKernelOptions<I, O extends string> extends ProgramOptions<I, O> {
  readonly form: 'threads';
}

/** A kernel of groups of threads that share memory and meet at barriers: each group is for one element of the grid. */
export interface GroupKernelOptions<I, O extends string> extends ProgramOptions<I, O> {
  readonly form: 'groups';
  /** Threads of a group: a power of two from 2 to 256. On engines without groups it is one thread that does it all. Default 64. */
  readonly threads?: number;
}

/** What defineKernel takes: `form` says which of three kinds of kernel it is. */
export type KernelOptions<I, O extends string> =
  | ElementwiseKernelOptions<I, O>
  | ThreadKernelOptions<I, O>
  | GroupKernelOptions<I, O>;

/** A kernel as a function: from a record of tensors to a record of tensors. Inputs of rank 0 may be numbers. */
export type Kernel<I, O extends string> = (inputs: { readonly [N in keyof I]: Tensor | number }) => {
  readonly [N in O]: Tensor;
};

type AnyOptions = (
  | ElementwiseKernelOptions<InputRules, string>
  | ThreadKernelOptions<InputRules, string>
  | GroupKernelOptions<InputRules, string>
) & { readonly threads?: number };

const me = 'defineKernel';

const commonRules = {
  name: [
    (value: unknown) => typeof value === 'string' && /^[A-Za-z]\w{0,60}$/.test(value),
    'a letter, then letters, digits and underscores',
  ],
  form: oneOf('elementwise', 'threads', 'groups'),
  inputs: [isPlain, 'a record of dtypes'],
  outputs: [isPlain, 'a record of rules'],
  body: [(value: unknown) => typeof value === 'function', 'a function'],
  gradient: [(value: unknown) => typeof value === 'function', 'a function'],
} as const;
const gridRule = { grid: [(value: unknown) => typeof value === 'function', 'a function of the inputs'] } as const;
const rules = {
  elementwise: commonRules,
  threads: { ...commonRules, ...gridRule },
  groups: {
    ...commonRules,
    ...gridRule,
    threads: [
      (value: unknown) => typeof value === 'number' && [2, 4, 8, 16, 32, 64, 128, 256].includes(value),
      'a power of two from 2 to 256',
    ],
  },
} as const;

/** A rule of an input as it is used. */
interface Rule {
  readonly name: string;
  readonly dtypes: readonly DType[];
  readonly rank: number | null;
}

function inputRule(name: string, given: unknown): Rule {
  const whole = isPlain(given) ? given : { dtype: given };
  if (isPlain(given)) checkFields<unknown>(me, given, { dtype: [() => true, ''], rank: numberFrom(0, 8, true) });
  const list: readonly unknown[] = Array.isArray(whole['dtype']) ? whole['dtype'] : [whole['dtype']];
  if (list.length === 0 || !list.every((d) => typeof d === 'string' && Object.hasOwn(dtypeInfo, d)))
    throw new ArgumentError(
      me,
      say`input ${name} takes ${shown(given)}: give a dtype, a list of dtypes, or { dtype, rank }`,
    );
  return { name, dtypes: list as DType[], rank: (whole['rank'] as number | undefined) ?? null };
}

const goodName = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name) && name !== '__proto__';

function checkOptions(options: AnyOptions): Rule[] {
  if (!isPlain(options))
    throw new ArgumentError(me, say`options are ${shown(options)}: give { name, form, inputs, outputs, body }`);
  checkFields<unknown>(me, { form: options.form }, { form: commonRules.form });
  checkFields<unknown>(me, options, rules[options.form] ?? commonRules);
  for (const name of ['name', 'form', 'inputs', 'outputs', 'body'] as const)
    if (options[name] === undefined) throw new ArgumentError(me, say`${name} is left out: every kernel needs it`);
  const outputs = Object.entries(options.outputs);
  const names = [...Object.keys(options.inputs), ...outputs.map(([name]) => name)];
  const bad = names.find((name, i) => !goodName(name) || names.indexOf(name) !== i);
  if (bad !== undefined)
    throw new ArgumentError(
      me,
      say`'${bad}' names no input or output: use letters, digits and underscores, each name once`,
    );
  if (outputs.length === 0) throw new ArgumentError(me, 'outputs are none: a kernel needs at least one');
  if (Object.keys(options.inputs).length === 0)
    throw new ArgumentError(me, 'inputs are none: a kernel needs at least one');
  for (const [name, rule] of outputs) {
    const fits =
      (typeof rule === 'string' &&
        (Object.hasOwn(options.inputs, rule) || (options.form === 'elementwise' && Object.hasOwn(dtypeInfo, rule)))) ||
      (typeof rule === 'function' && options.form !== 'elementwise');
    if (!fits)
      throw new ArgumentError(
        me,
        say`output ${name} is ${shown(rule)}: give the name of an input${options.form === 'elementwise' ? ' or a dtype' : ' or a function of the inputs'}`,
      );
  }
  return Object.entries(options.inputs).map(([name, rule]) => inputRule(name, rule));
}

/** What calls of one kernel know of it. */
interface Known {
  readonly name: string;
  readonly inputs: readonly Rule[];
  readonly outputs: readonly string[];
  readonly gradient: KernelGradient<InputRules, string> | null;
  /** The outputs again, from the same inputs. */
  readonly again: (nodes: readonly Node[]) => Node[];
}

/** Forms that a kernel keeps; the oldest is forgotten. */
const mostForms = 128;

/**
 * Makes a function of tensors of a kernel that you write yourself, where composed operations are not enough: several passes in one, recurrences,
 * stencils, loops that end early. It runs on every engine. The body is run once for each combination of shapes and dtypes; with the methods of its
 * first argument it writes a program, which is verified, compiled for the device, and kept. What the body closes over is part of the program.
 *
 * No kernel reads or writes outside of its tensors: indices are checked where they are not known to fit. Elements of outputs that nobody writes are 0.
 * `vmap` gives every example a kernel of its own. How to write kernels: docs/custom-kernels.md.
 *
 * @param options name, form, inputs, outputs, body; gradient
 * @returns a function from a record of inputs to a record of outputs
 * @throws ArgumentError for options that do not fit. Calls throw DTypeError and ShapeError for inputs that do not fit, KernelError for bodies that
 *   break a rule, with their line, and GradientError where a gradient is wanted and there is none
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
  for (const { functions } of Object.values(elementary)) if (functions !== undefined) bringFunctions(functions);
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

// Elementwise kernels: expressions that the planner puts into whatever loops they are needed in.

function elementwiseForm(
  kernel: Extract<AnyOptions, { form: 'elementwise' }>,
  facts: Known,
  shapes: Readonly<Record<string, KernelShape>>,
): (nodes: readonly Node[]) => Node[] {
  const { name, outputs } = facts;
  const dtypes = outputs.map((output) => {
    const rule = kernel.outputs[output]!;
    return shapes[rule]?.dtype ?? (rule as DType);
  });
  const valuesOf = (e: Exprs, parts: readonly KNode[]): KNode[] => {
    const scope: Scope = { op: name, e, block: { open: true } };
    const values = Object.fromEntries(facts.inputs.map((input, i) => [input.name, new KernelValue(scope, parts[i]!)]));
    const made: unknown = kernel.body(new KernelMath(scope), values);
    const record = isPlain(made) ? made : outputs.length === 1 ? { [outputs[0]!]: made } : made;
    return outputs.map((output, i) => {
      const value = isPlain(record) ? record[output] : undefined;
      if (value === undefined)
        fail(name, say`the body returned no ${output}: return a value for each of ${outputs.join(', ')}`);
      const node = operandOf(scope, value as KernelOperand, dtypes[i]!);
      if (node.dtype !== dtypes[i])
        fail(name, say`the body returned ${node.dtype} for ${output}: it is ${dtypes[i]!}; cast it`);
      return node;
    });
  };
  // Written once as a program, to be verified and known by its text.
  const b = new ProgramBuilder();
  const parts = facts.inputs.map((input, i) => b.load(b.e.param(i, shapes[input.name]!.dtype, 'read', 1), 0));
  const traced = checked(name, () => valuesOf(b.e, parts));
  for (const [i, value] of traced.entries()) b.store(b.e.param(parts.length + i, dtypes[i]!, 'write', 1), 0, value);
  const program = b.build({ name });
  verifyProgram(program);
  const text = printProgram(program);
  return (nodes) =>
    outputs.map((_, i) =>
      makeNode(customMapPrimitive, nodes, {
        key: hashOf(`${i} ${text}`),
        dtype: dtypes[i]!,
        value: (e, given) => valuesOf(e, given)[i]!,
        gradient: (c) =>
          gradientsOf(
            facts,
            c,
            (grads) => {
              if (sameShape(grads.shape, c.node.shape)) return grads;
              throw new ShapeError(
                name,
                say`a gradient has shape ${showShape(grads.shape)}: of an elementwise kernel it has that of the output, ${showShape(c.node.shape)}; what was stretched is summed for you`,
                [grads.shape, c.node.shape],
              );
            },
            c.src,
            (zeros) => outputs.map((_, at) => (at === i ? c.grad : zeros(c.node.shape, dtypes[at]!))),
          ),
      }),
    );
}

// Kernels with programs.

function programForm(
  kernel: Exclude<AnyOptions, { form: 'elementwise' }>,
  facts: Known,
  shapes: Readonly<Record<string, KernelShape>>,
): (nodes: readonly Node[]) => Node[] {
  const { name, inputs, outputs } = facts;
  const described = outputs.map((output): OutputPlace => {
    const rule = kernel.outputs[output]!;
    const shape: unknown = typeof rule === 'string' ? shapes[rule] : called(name, rule, shapes);
    if (!isPlain(shape) || !Object.hasOwn(dtypeInfo, String(shape['dtype'])))
      throw new ArgumentError(name, say`the rule of output ${output} gave ${shown(shape)}: return { shape, dtype }`);
    checkShape(name, shape['shape'] as Shape);
    return { name: output, shape: [...(shape['shape'] as Shape)], dtype: shape['dtype'] as DType, offset: 0 };
  });
  const dtypes = [...new Set(described.map(({ dtype }) => dtype))];
  const lengths = new Map<DType, number>();
  const places = described.map((place) => {
    const offset = lengths.get(place.dtype) ?? 0;
    lengths.set(place.dtype, offset + sizeOf(place.shape));
    return { ...place, offset };
  });
  const first = places[0]!.shape;
  const wanted: unknown =
    kernel.grid === undefined
      ? kernel.form === 'groups'
        ? first.slice(0, -1)
        : first
      : called(name, kernel.grid, shapes);
  checkShape(name, wanted as Shape);
  const grid = [...(wanted as Shape)];
  const body = kernel.body as unknown as ProgramBody;
  const threads = kernel.form === 'groups' ? (kernel.threads ?? 64) : 1;
  const formFor = (dtype: DType, batch: Form['batch']): Form => ({
    name,
    threads,
    grid,
    inputs: inputs.map((input) => input.name),
    outputs: places,
    dtype,
    length: lengths.get(dtype)!,
    batch,
    body: (k, given, made) => called(name, body, k, given, made),
  });
  const examples = inputs.map((input) => shapes[input.name]!);
  const attrOf = (dtype: DType, batch: Form['batch']): CustomProgram => {
    const sized = examples.map(({ shape, dtype: own }, i) => ({
      shape: [...batch.filter((level) => level.inputs[i]).map(({ size }) => size), ...shape],
      dtype: own,
    }));
    const traced: TracedForm = checked(name, () => trace(formFor(dtype, batch), sized));
    return {
      key: traced.key,
      dtype,
      shape: [...batch.map(({ size }) => size), lengths.get(dtype)!],
      lower: traced.lower,
      gradient: (c) => programGradient(c, dtype, batch),
      batch: (c) => batchOf(c, dtype, batch),
    };
  };
  const batchOf = (c: BatchContext<'customProgram'>, dtype: DType, batch: Form['batch']): Node => {
    const level = { size: c.size, inputs: c.sources.map((source) => source !== null) };
    return makeAgain(
      c.node,
      c.sources.map((source, i) => source ?? c.src[i]!),
      attrOf(dtype, [level, ...batch]),
    );
  };
  /** The outputs of a node, or their gradients, for one example. */
  const parts = (node: Node, dtype: DType): ReadonlyMap<string, Node> =>
    new Map(
      places
        .filter((place) => place.dtype === dtype)
        .map(({ name: output, shape, offset }) => {
          const whole = sizeOf(shape) === node.shape[0];
          const own = whole ? node : p.slice(node, [offset], [sizeOf(shape)], [1]);
          return [output, p.reshape(own, shape)];
        }),
    );
  const oneExample = (c: GradientContext<'customProgram'>, src: readonly Node[], grad: Node, dtype: DType) =>
    gradientsOf(
      facts,
      c,
      (g, i) => {
        if (sameShape(g.shape, src[i]!.shape)) return g;
        throw new ShapeError(
          name,
          say`the gradient of ${inputs[i]!.name} has shape ${showShape(g.shape)}: the input has ${showShape(src[i]!.shape)}; make them equal`,
          [g.shape, src[i]!.shape],
        );
      },
      src,
      (zeros) => {
        const grads = parts(grad, dtype);
        return places.map((place) => grads.get(place.name) ?? zeros(place.shape, place.dtype));
      },
    );
  const programGradient = (
    c: GradientContext<'customProgram'>,
    dtype: DType,
    batch: Form['batch'],
  ): readonly (Node | null)[] => {
    if (batch.length === 0) return oneExample(c, c.src, c.grad, dtype);
    // One example of the outermost level, whose axes vmap puts back.
    let f = (...tensors: Tensor[]): (Tensor | null)[] => {
      const nodes = tensors.map((t) => nodeOf(t, name));
      return oneExample(c, nodes.slice(0, -1), nodes[nodes.length - 1]!, dtype).map((g) =>
        g === null ? null : wrap(g),
      );
    };
    for (const level of [...batch].reverse()) {
      const inner = f;
      const inAxes = [...level.inputs.map((has) => (has ? 0 : null)), 0];
      f = vmap((...tensors: Tensor[]) => inner(...tensors), { inAxes });
    }
    const made = f(...c.src.map(wrap), wrap(c.grad));
    return made.map((g, i) => {
      if (g === null) return null;
      let node = nodeOf(g, name);
      // What all examples share gets the sum of theirs.
      const axes = batch.flatMap((level, axis) => (level.inputs[i] ? [] : [axis]));
      if (axes.length > 0) node = p.reduce(node, 'sum', axes);
      return node;
    });
  };
  const attrs = dtypes.map((dtype) => attrOf(dtype, []));
  return (nodes) => {
    const all = new Map(
      attrs.flatMap((attr, i) => [...parts(makeNode(customProgramPrimitive, nodes, attr), dtypes[i]!)]),
    );
    return outputs.map((output) => all.get(output)!);
  };
}

/** What the user's gradient gives, in the order of the inputs. */
function gradientsOf(
  { name, inputs, outputs, gradient, again }: Known,
  { needs }: { readonly needs: readonly boolean[] },
  check: (gradient: Node, i: number) => Node,
  src: readonly Node[],
  gradsOf: (zeros: (shape: Shape, dtype: DType) => Node) => readonly Node[],
): (Node | null)[] {
  if (gradient === null)
    throw new GradientError(
      name,
      'this kernel has no gradient: give one to defineKernel, or detach() what goes into it',
    );
  const record = (names: readonly string[], nodes: readonly Node[]): Record<string, Tensor> =>
    Object.fromEntries(names.map((n, i) => [n, wrap(nodes[i]!)]));
  const grads = gradsOf((shape, dtype) => p.constant(0, dtype, shape));
  const made: unknown = callUser(() =>
    called(name, gradient, {
      inputs: record(
        inputs.map((i) => i.name),
        src,
      ),
      outputs: record(outputs, again(src)),
      grads: record(outputs, grads),
    }),
  );
  if (!isPlain(made))
    throw new ArgumentError(
      name,
      say`the gradient returned ${shown(made)}: return a record with a tensor, or null, per input`,
    );
  const extra = Object.keys(made).find((key) => !inputs.some((i) => i.name === key));
  if (extra !== undefined) throw new ArgumentError(name, say`the gradient returned '${extra}', which is no input`);
  return inputs.map(({ name: input }, i) => {
    const value = made[input];
    if (!isFloat(src[i]!.dtype) || value === null) return null;
    if (value === undefined) {
      if (needs[i] !== true) return null;
      throw new ArgumentError(name, say`the gradient returned nothing for ${input}: return a tensor, or null for zero`);
    }
    if (!isTensor(value))
      throw new ArgumentError(name, say`the gradient of ${input} is ${shown(value)}: return a tensor or null`);
    return check(nodeOf(value, name), i);
  });
}
