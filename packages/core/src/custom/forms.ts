/**
 * Forms of kernels: what a kernel is for the shapes and dtypes of one call. The body is run and verified here, once; then calls record nodes. How programs are
 * written is lower.ts.
 */
import { GradientError } from '../autodiff/backward.ts';
import { vmap } from '../autodiff/vmap.ts';
import type { BatchContext, GradientContext } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { makeAgain, makeNode } from '../graph/primitives.ts';
import { callUser } from '../graph/scope.ts';
import { ProgramBuilder } from '@polygrad/compiler/ir/builder/builder';
import type { Exprs } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { printProgram } from '@polygrad/compiler/ir/print';
import { verifyProgram } from '@polygrad/compiler/ir/verify/verify';
import { customMapPrimitive, type CustomProgram, customProgramPrimitive } from '../primitives/custom.ts';
import { checkShape } from '@polygrad/compiler/shape/axes';
import { type DType, dtypeInfo, isFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { isPlain, say, shown } from '@polygrad/compiler/shape/shown';
import { sameShape, type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { isTensor, nodeOf, wrap } from '../tensor/handle.ts';
import { called } from '../tensor/scope.ts';
import type { Tensor } from '../tensor/types.ts';
import { KernelMath } from './context.ts';
import { type Form, hashOf, type ProgramBody, trace, type TracedForm } from './lower.ts';
import type { OutputPlace } from './memory.ts';
import type { AnyOptions, InputRules, KernelGradient, KernelShape, Rule } from './options.ts';
import { checked, fail, type KernelOperand, KernelValue, operandOf, type Scope } from './value.ts';

/** What calls of one kernel know of it. */
export interface Known {
  readonly name: string;
  readonly inputs: readonly Rule[];
  readonly outputs: readonly string[];
  readonly gradient: KernelGradient<InputRules, string> | null;
  /** The outputs again, from the same inputs. */
  readonly again: (nodes: readonly Node[]) => Node[];
}

// Elementwise kernels: expressions that the planner puts into whatever loops they are needed in.

/** Makes the nodes of an elementwise kernel for these dtypes. */
export function elementwiseForm(
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

type ProgramKernel = Exclude<AnyOptions, { form: 'elementwise' }>;
type Batch = Form['batch'];

/** Makes the nodes of a kernel of threads or groups for these shapes and dtypes. */
export function programForm(
  kernel: ProgramKernel,
  facts: Known,
  shapes: Readonly<Record<string, KernelShape>>,
): (nodes: readonly Node[]) => Node[] {
  const form = new ProgramForm(kernel, facts, shapes);
  const attrs = form.dtypes.map((dtype) => form.attr(dtype, []));
  return (nodes) => {
    const all = new Map(
      attrs.flatMap((attr) => [...form.parts(makeNode(customProgramPrimitive, nodes, attr), attr.dtype)]),
    );
    return facts.outputs.map((output) => all.get(output)!);
  };
}

/** Outputs by the kernel's rules; those of one dtype lie one after the other in one node. */
function placesOf(
  kernel: ProgramKernel,
  { name, outputs }: Known,
  shapes: Readonly<Record<string, KernelShape>>,
): readonly OutputPlace[] {
  const described = outputs.map((output): OutputPlace => {
    const rule = kernel.outputs[output]!;
    const shape: unknown = typeof rule === 'string' ? shapes[rule] : called(name, rule, shapes);
    if (!isPlain(shape) || !Object.hasOwn(dtypeInfo, String(shape.dtype)))
      throw new ArgumentError(name, say`the rule of output ${output} gave ${shown(shape)}: return { shape, dtype }`);
    checkShape(name, shape.shape as Shape);
    return { name: output, shape: [...(shape.shape as Shape)], dtype: shape.dtype as DType, offset: 0 };
  });
  const lengths = new Map<DType, number>();
  return described.map((place) => {
    const offset = lengths.get(place.dtype) ?? 0;
    lengths.set(place.dtype, offset + sizeOf(place.shape));
    return { ...place, offset };
  });
}

/** Groups, or threads by themselves: those asked for, or those of the first output. */
function gridOf(
  kernel: ProgramKernel,
  name: string,
  first: Shape,
  shapes: Readonly<Record<string, KernelShape>>,
): readonly number[] {
  const ofOutput = kernel.form === 'groups' ? first.slice(0, -1) : first;
  const wanted: unknown = kernel.grid === undefined ? ofOutput : called(name, kernel.grid, shapes);
  checkShape(name, wanted as Shape);
  return [...(wanted as Shape)];
}

/** A kernel of threads or groups for the shapes and dtypes of one call: a node for each dtype of its outputs, their batches and gradients. */
class ProgramForm {
  /** Of the outputs, each once. */
  readonly dtypes: readonly DType[];
  readonly #facts: Known;
  readonly #places: readonly OutputPlace[];
  readonly #examples: readonly KernelShape[];
  readonly #common: Pick<Form, 'name' | 'threads' | 'grid' | 'inputs' | 'outputs' | 'body'>;

  constructor(kernel: ProgramKernel, facts: Known, shapes: Readonly<Record<string, KernelShape>>) {
    const { name, inputs } = facts;
    const places = placesOf(kernel, facts, shapes);
    const body = kernel.body as unknown as ProgramBody;
    this.dtypes = [...new Set(places.map(({ dtype }) => dtype))];
    this.#facts = facts;
    this.#places = places;
    this.#examples = inputs.map((input) => shapes[input.name]!);
    this.#common = {
      name,
      threads: kernel.form === 'groups' ? (kernel.threads ?? 64) : 1,
      grid: gridOf(kernel, name, places[0]!.shape, shapes),
      inputs: inputs.map((input) => input.name),
      outputs: places,
      body: (k, given, made) => called(name, body, k, given, made),
    };
  }

  /** Elements of all outputs of a dtype. */
  #length(dtype: DType): number {
    return this.#places.reduce((sum, place) => (place.dtype === dtype ? sum + sizeOf(place.shape) : sum), 0);
  }

  /** What the node of a dtype is, under these levels of vmap. */
  attr(dtype: DType, batch: Batch): CustomProgram {
    const length = this.#length(dtype);
    const sized = this.#examples.map(({ shape, dtype: own }, i) => ({
      shape: [...batch.filter((level) => level.inputs[i]).map(({ size }) => size), ...shape],
      dtype: own,
    }));
    const traced: TracedForm = checked(this.#facts.name, () => trace({ ...this.#common, dtype, length, batch }, sized));
    return {
      key: traced.key,
      dtype,
      shape: [...batch.map(({ size }) => size), length],
      lower: traced.lower,
      gradient: (c) => this.#gradient(c, dtype, batch),
      batch: (c) => this.#batched(c, dtype, batch),
    };
  }

  /** The node under one level of vmap more. */
  #batched(c: BatchContext<'customProgram'>, dtype: DType, batch: Batch): Node {
    const level = { size: c.size, inputs: c.sources.map((source) => source !== null) };
    return makeAgain(
      c.node,
      c.sources.map((source, i) => source ?? c.src[i]!),
      this.attr(dtype, [level, ...batch]),
    );
  }

  /** The outputs of a node, or their gradients, for one example. */
  parts(node: Node, dtype: DType): ReadonlyMap<string, Node> {
    return new Map(
      this.#places
        .filter((place) => place.dtype === dtype)
        .map(({ name: output, shape, offset }) => {
          const whole = sizeOf(shape) === node.shape[0];
          const own = whole ? node : p.slice(node, [offset], [sizeOf(shape)], [1]);
          return [output, p.reshape(own, shape)];
        }),
    );
  }

  /** Gradients of the inputs for one example. */
  #oneExample(c: GradientContext<'customProgram'>, src: readonly Node[], grad: Node, dtype: DType): (Node | null)[] {
    const { name, inputs } = this.#facts;
    return gradientsOf(
      this.#facts,
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
        const grads = this.parts(grad, dtype);
        return this.#places.map((place) => grads.get(place.name) ?? zeros(place.shape, place.dtype));
      },
    );
  }

  /** Gradients of the inputs under levels of vmap. */
  #gradient(c: GradientContext<'customProgram'>, dtype: DType, batch: Batch): readonly (Node | null)[] {
    const { name } = this.#facts;
    if (batch.length === 0) return this.#oneExample(c, c.src, c.grad, dtype);
    // One example of the outermost level, whose axes vmap puts back.
    let f = (...tensors: Tensor[]): (Tensor | null)[] => {
      const nodes = tensors.map((t) => nodeOf(t, name));
      const grads = this.#oneExample(c, nodes.slice(0, -1), nodes[nodes.length - 1]!, dtype);
      return grads.map((g) => (g === null ? null : wrap(g)));
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
  }
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
