/**
 * Tensors and group memory as a kernel sees them. Whatever the index, nothing outside is touched: reads go to the nearest element, or give a value
 * of the user's; writes outside are left out.
 *
 * Indices whose bounds are known to fit are not checked again (`lowOf`, `highOf`: bounds of the kernel IR, exact where integers may wrap).
 */
import type { ProgramBuilder } from '@polygrad/compiler/ir/builder/builder';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { highOf, lowOf } from '@polygrad/compiler/ir/node';
import type { TensorView } from '@polygrad/compiler/programs/program-set';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { showShape } from '@polygrad/compiler/shape/errors';
import { say } from '@polygrad/compiler/shape/shown';
import { rowMajorStrides, type Shape } from '@polygrad/compiler/shape/view';
import { checked, fail, type KernelOperand, KernelValue, operandOf, type Scope, type Site, site } from './value.ts';

/** Where an element is: one int32 value or whole number per axis; of one axis it need be no list. */
export type KernelIndex = KernelValue | number | readonly (KernelValue | number)[];

/** What memory needs of the run of a body. */
export interface Run extends Scope {
  readonly b: ProgramBuilder;
  /** The expression in operations that the target has. */
  ready(n: KNode): KNode;
  /** True unless the body is inside of what may not run. */
  readonly certain: boolean;
  /** Of variables that take every number below an extent, the extent. */
  readonly extents: ReadonlyMap<KNode, number>;
  /** Remembers where the statement written last was asked for. */
  wrote(at: Site): void;
}

/** The index of an element: an expression per axis. */
function indexOf(run: Run, name: string, index: KernelIndex, shape: Shape): KNode[] {
  const list = (Array.isArray(index) ? index : [index]) as readonly (KernelValue | number)[];
  if (list.length !== shape.length)
    fail(run.op, say`${list.length} indices for ${name} of shape ${showShape(shape)}: give one per axis`);
  return list.map((i) => {
    if (typeof i === 'number' && !Number.isSafeInteger(i))
      fail(run.op, say`an index of ${name} is ${i}: give a whole number or an int32 value`);
    // Numbers beyond int32 are outside of every axis.
    const n = operandOf(run, typeof i === 'number' ? Math.max(-(2 ** 31), Math.min(i, 2 ** 31 - 1)) : i, 'int32');
    if (n.dtype !== 'int32')
      fail(run.op, say`an index of ${name} is ${n.dtype}: needs int32; convert with cast('int32')`);
    return n;
  });
}

/** Conditions under which an index is in range; none if that is known. */
function inside({ e }: Run, index: readonly KNode[], shape: Shape): KNode | null {
  let all: KNode | null = null;
  index.forEach((i, axis) => {
    const conditions = [
      lowOf(i) < 0 ? e.le(e.i32(0), i) : null,
      highOf(i) >= shape[axis]! ? e.lt(i, shape[axis]!) : null,
    ];
    for (const c of conditions) if (c !== null) all = all === null ? c : e.and(all, c);
  });
  return all;
}

/** The index of the nearest element there is. */
function nearest({ e }: Run, index: readonly KNode[], shape: Shape): KNode[] {
  return index.map((i, axis) => {
    const last = shape[axis]! - 1;
    const low = lowOf(i) < 0 ? e.max(i, 0) : i;
    return highOf(i) > last ? e.min(low, last) : low;
  });
}

/** An element of memory at strides; `before`: where its first one is. */
function at({ e }: Run, index: readonly KNode[], strides: readonly number[], before: KNode): KNode {
  return index.reduce((sum, i, axis) => e.add(sum, e.mul(i, strides[axis]!)), before);
}

/** Reads an element, at an index of any value. */
function read(
  run: Run,
  memory: { readonly name: string; readonly shape: Shape; readonly dtype: DType; readonly node: KNode },
  { strides, before }: { readonly strides: readonly number[]; readonly before: KNode },
  given: KernelIndex,
  outside: KernelOperand | undefined,
): KernelValue {
  return checked(run.op, () => {
    const { name, shape, dtype, node } = memory;
    const index = indexOf(run, name, given, shape).map((i) => run.ready(i));
    const other = outside === undefined ? null : run.ready(operandOf(run, outside, dtype));
    if (other !== null && other.dtype !== dtype)
      fail(run.op, say`the value outside of ${name} is ${other.dtype}: needs ${dtype}`);
    // Of nothing there is no nearest element.
    if (shape.includes(0)) return new KernelValue(run, other ?? run.e.constant(dtype, 0));
    const gate = other === null ? null : inside(run, index, shape);
    // Where the gate is false the element is not read, but its index must be in range.
    const place = run.ready(at(run, nearest(run, index, shape), strides, before));
    const value = run.b.load(node, place, 1, gate ?? undefined, other ?? undefined);
    if (node.op === 'SHARED') run.wrote(site());
    return new KernelValue(run, value);
  });
}

/** Writes an element; where the index is outside, nothing. */
function write(
  run: Run,
  memory: { readonly name: string; readonly shape: Shape; readonly dtype: DType; readonly node: KNode },
  { strides, before }: { readonly strides: readonly number[]; readonly before: KNode },
  given: KernelIndex,
  value: KernelOperand,
): readonly KNode[] | null {
  return checked(run.op, () => {
    const { name, shape, dtype, node } = memory;
    const index = indexOf(run, name, given, shape).map((i) => run.ready(i));
    const stored = run.ready(operandOf(run, value, dtype));
    if (stored.dtype !== dtype) fail(run.op, say`stores ${stored.dtype} to ${name}, which is ${dtype}; cast it`);
    if (shape.includes(0)) return null;
    const gate = inside(run, index, shape);
    if (gate?.op === 'CONST' && gate.arg.value === 0) return null;
    const place = run.ready(at(run, nearest(run, index, shape), strides, before));
    run.b.store(node, place, stored, gate === null ? undefined : run.ready(gate));
    run.wrote(site());
    return index;
  });
}

/**
 * An input of a kernel.
 *
 * @example
 * const shifted = defineKernel({
 *   name: 'shifted',
 *   form: 'threads',
 *   inputs: { x: 'float32' },
 *   outputs: { y: 'x' },
 *   body: (k, { x }, { y }) => y.set(k.index, x.at(k.index[0].sub(1), 0)),
 * });
 * shifted({ x: tensor([1, 2, 3]) }).y; // [0, 1, 2]
 */
export class KernelInput {
  readonly name: string;
  /** In this call, without the axes that `vmap` adds. */
  readonly shape: Shape;
  readonly dtype: DType;
  readonly #run: Run;
  readonly #memory: KNode;
  readonly #layout: { readonly strides: readonly number[]; readonly before: KNode };

  /** @internal */
  constructor(run: Run, name: string, memory: KNode, view: TensorView, batch: readonly KNode[]) {
    this.name = name;
    this.shape = view.shape.slice(batch.length);
    this.dtype = view.dtype;
    this.#run = run;
    this.#memory = memory;
    const strides = view.strides.slice(batch.length);
    this.#layout = { strides, before: at(run, batch, view.strides, run.e.i32(view.shift)) };
  }

  /** How many elements there are along an axis; negative axes count from the last. */
  size(axis: number): number {
    const n = this.shape.at(axis);
    if (n === undefined)
      fail(this.#run.op, say`no axis ${axis} of ${this.name}, which has shape ${showShape(this.shape)}`);
    return n;
  }

  /**
   * The element at an index. Outside of the tensor it is the nearest one; with `outside` it is that value, and nothing is read.
   *
   * @throws KernelError unless there is one int32 index per axis
   */
  at(index: KernelIndex, outside?: KernelOperand): KernelValue {
    const { name, shape, dtype } = this;
    return read(this.#run, { name, shape, dtype, node: this.#memory }, this.#layout, index, outside);
  }
}

/** Where an output lies in the memory that a kernel writes. */
export interface OutputPlace {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
  /** Its first element, in that of the batch. */
  readonly offset: number;
}

/** An output of a kernel. Unwritten elements are 0. */
export class KernelOutput {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
  /** @internal Whether every element is written whatever the data is. */
  covered: boolean = false;
  readonly #run: Run;
  readonly #memory: KNode | null;
  readonly #layout: { readonly strides: readonly number[]; readonly before: KNode };

  /** @internal `memory`: null where another program of the same kernel writes it. */
  constructor(run: Run, { name, shape, dtype, offset }: OutputPlace, memory: KNode | null, before: KNode) {
    this.name = name;
    this.shape = shape;
    this.dtype = dtype;
    this.#run = run;
    this.#memory = memory;
    this.#layout = { strides: rowMajorStrides(shape), before: run.e.add(before, offset) };
    if (shape.includes(0)) this.covered = true;
  }

  /**
   * Writes the element at an index. Outside of the tensor nothing is written. Two threads must not write the same element: which of them is the
   * last is not defined.
   *
   * @throws KernelError unless there is one int32 index per axis and the value has the dtype
   */
  set(index: KernelIndex, value: KernelOperand): void {
    if (this.#memory === null) return;
    const { name, shape, dtype } = this;
    const wrote = write(this.#run, { name, shape, dtype, node: this.#memory }, this.#layout, index, value);
    if (wrote !== null) this.covered ||= this.#coversAll(wrote);
  }

  /** Each axis has its own loop variable. */
  #coversAll(index: readonly KNode[]): boolean {
    if (!this.#run.certain) return false;
    const used = new Set<KNode>();
    return index.every((i, axis) => {
      const size = this.shape[axis]!;
      if (size === 1 && i.op === 'CONST') return i.arg.value === 0;
      if (!((this.#run.extents.get(i) ?? 0) >= size) || used.has(i)) return false;
      used.add(i);
      return true;
    });
  }
}

/** Memory that the threads of a group share. It is 0 at first. */
export class KernelShared {
  readonly length: number;
  readonly dtype: DType;
  readonly #run: Run;
  readonly #memory: KNode;

  /** @internal */
  constructor(run: Run, memory: KNode, length: number) {
    this.#run = run;
    this.#memory = memory;
    this.length = length;
    this.dtype = memory.dtype as DType;
  }

  get #described(): Parameters<typeof read>[1] {
    return { name: 'shared memory', shape: [this.length], dtype: this.dtype, node: this.#memory };
  }
  get #layout(): Parameters<typeof read>[2] {
    return { strides: [1], before: this.#run.e.i32(0) };
  }

  /** The element at an index, or the nearest one. What another thread wrote is there after a `barrier`. */
  at(index: KernelValue | number): KernelValue {
    return read(this.#run, this.#described, this.#layout, index, undefined);
  }
  /** Writes the element at an index; outside, nothing. */
  set(index: KernelValue | number, value: KernelOperand): void {
    write(this.#run, this.#described, this.#layout, index, value);
  }
}
