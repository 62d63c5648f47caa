/**
 * Collects programs written with the builder that together are one kernel of a plan, and the temporaries between them. Out: `Lowered`.
 *
 * A program computes `count` units. One thread computes a unit (on CPUs a group is one thread; SIMT engines put many units into a
 * group), or the threads of a group compute one together, by the operations of groups.ts.
 */
import { gridLimit } from '../codegen/linearize/linearize.ts';
import type { CodegenCaps, Lowered, LoweredDispatch } from '../codegen/lowering.ts';
import { ProgramBuilder } from '../ir/builder/builder.ts';
import { Exprs } from '../ir/expr.ts';
import type { KNode, KNodeOf } from '../ir/ir.ts';
import { assumeBounds } from '../ir/node.ts';
import { costOf, programOf } from '../ir/program.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import { rowMajorStrides, type Shape } from '../shape/view.ts';

/** Threads of a group of a SIMT engine where each works alone. */
const aloneThreads = 64;

type Access = 'read' | 'write' | 'readwrite';

/** A temporary: its place among the temporaries, and what it holds. */
export interface Temp {
  readonly at: number;
  readonly dtype: DType;
  readonly length: number;
}

/**
 * The sizes that programs for a class of them are bound to: the first scalars of each. Numbers of shapes and strides are those at capacity.
 */
export interface ProgramSizes {
  readonly capacities: readonly number[];
  /** The number divided by the sizes in it; 0 for numbers that do not depend on them. */
  factorOf(n: number): number;
  /** The number as an expression, with the bound sizes in place of capacities. */
  bound(e: Exprs, n: number): KNode;
}

/** One program while it is written. */
export interface ProgramWriter {
  readonly b: ProgramBuilder;
  readonly e: Exprs;
  /** Index of the unit. */
  readonly group: KNode;
  /** Threads that do a unit together, a power of two, and which of them this one is. */
  readonly threads: number;
  readonly thread: KNode;
  /** Neighbours among them that meet at less cost than all; 1 if there are none. */
  readonly part: number;
  /** Memory that the kernel is given: `slot` counts the kernel's own parameters. `fewer`: the sizes decide how many elements are bound. */
  param(slot: number, dtype: DType, access: Access, length: number, fewer?: boolean): KNode;
  temp(temp: Temp, access: Access): KNode;
  /** Places a condition or a count that depends on data, and says for the estimate what it is on average. */
  typical(value: KNode, average: number): KNode;
}

/** A program before it is known which unit it does. */
type Bound = Omit<ProgramWriter, 'group' | 'threads' | 'thread' | 'part'>;

export class ProgramSet {
  readonly #name: string;
  readonly #caps: CodegenCaps;
  readonly #sizes: ProgramSizes | null;
  readonly #temps: number[] = [];
  readonly #dispatches: LoweredDispatch[] = [];

  constructor(name: string, caps: CodegenCaps, sizes: ProgramSizes | null = null) {
    this.#name = name;
    this.#caps = caps;
    this.#sizes = sizes;
  }

  temp(dtype: DType, length: number): Temp {
    const bytes = this.#caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes;
    return { at: this.#temps.push(length * bytes) - 1, dtype, length };
  }

  /**
   * Adds a program that does `count` units, each by so many threads together, a power of two. One by itself must not use group memory on
   * SIMT engines.
   */
  add(suffix: string, count: number, write: (w: ProgramWriter) => void, threads: number = 1): void {
    const { simt, maxGroup, parts } = this.#caps;
    const side = simt && threads === 1 ? Math.min(aloneThreads, maxGroup) : 1;
    this.#write(suffix, Math.ceil(count / side), side * threads, (w, group) => {
      const { b, e } = w;
      const local = e.special('local', 0, side * threads);
      if (side === 1) {
        const part = threads > (parts ?? threads) ? parts! : 1;
        return write({ ...w, group, threads, thread: threads === 1 ? e.i32(0) : local, part });
      }
      const unit = e.add(e.mul(group, side), local);
      const inside = count % side === 0 ? e.bool(true) : e.lt(unit, count);
      assumeBounds(unit, 0, Math.max(0, count - 1));
      b.ifThen(inside, () => write({ ...w, group: unit, threads, thread: e.i32(0), part: 1 }));
    });
  }

  #write(suffix: string, groups: number, threads: number, write: (w: Bound, group: KNode) => void): void {
    const e = new Exprs();
    const b = new ProgramBuilder(e);
    const params: KNodeOf<'PARAM'>[] = [];
    const bindings: LoweredDispatch['bindings'][number][] = [];
    const bound = (
      binding: LoweredDispatch['bindings'][number],
      dtype: DType,
      access: Access,
      length: number,
      fewer: boolean = false,
    ): KNode => {
      const param = e.param(params.length, dtype, access, length, fewer ? 1 : undefined);
      params.push(param);
      bindings.push(binding);
      return param;
    };
    const averages = new Map<KNode, number>();
    const w: Bound = {
      b,
      e,
      param: (slot, dtype, access, length, fewer) => bound({ param: slot }, dtype, access, length, fewer),
      temp: ({ at, dtype, length }, access) => bound({ temp: at }, dtype, access, length),
      typical: (value, average) => {
        const placed = b.place(value);
        averages.set(placed, average);
        return placed;
      },
    };
    const columns = this.#caps.simt ? Math.min(groups, gridLimit) : groups;
    const rows = columns === 0 ? 1 : Math.ceil(groups / columns);
    const column = e.special('group', 0, columns);
    const group = rows === 1 ? column : e.add(e.mul(e.special('group', 1, rows), columns), column);
    if (columns * rows === groups) write(w, group);
    else {
      const inside = e.lt(group, groups);
      assumeBounds(group, 0, groups - 1);
      b.ifThen(inside, () => write(w, group));
    }
    const program = b.build({
      name: `${this.#name}${suffix}`,
      params,
      scalars: (this.#sizes?.capacities ?? []).map(() => 'int32' as const),
      grid: [columns, rows, 1],
      group: [threads, 1, 1],
    });
    this.#dispatches.push({
      program: programOf({ ...program, cost: costOf(program.body, averages, threads) }),
      bindings,
    });
  }

  result(): Lowered {
    return { dispatches: this.#dispatches, temps: this.#temps };
  }
}

// How programs written with the builder address tensors: as lines along one axis.
//
// A line is what remains when all indices but the axis's own are fixed. Lines are counted in row-major order of those.

/** A tensor in memory: element `index` is at `shift` + sum of index * strides. */
export interface TensorView {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly strides: readonly number[];
  readonly shift: number;
  /** Elements a program may touch, counted from the start of its binding. */
  readonly span: number;
  /** Laid out for the sizes that are bound, where the strides depend on those; else for their capacities. */
  readonly held?: boolean;
}

/** A row-major tensor that starts at its binding. */
export function rowMajor(dtype: DType, shape: Shape): TensorView {
  const span = shape.reduce((n, size) => n * size, 1);
  return { dtype, shape, strides: rowMajorStrides(shape), shift: 0, span };
}

/** `length` elements of an axis from `start`. */
export function narrowed(view: TensorView, axis: number, start: number, length: number): TensorView {
  return {
    ...view,
    shape: view.shape.map((n, i) => (i === axis ? length : n)),
    shift: view.shift + start * view.strides[axis]!,
  };
}

/** The same memory with one axis left out, at its first position. */
export function without(view: TensorView, axis: number): TensorView {
  const rest = <T>(list: readonly T[]): T[] => list.filter((_, i) => i !== axis);
  return { ...view, shape: rest(view.shape), strides: rest(view.strides) };
}

/** Number of lines along the axis. */
export function linesOf(shape: Shape, axis: number): number {
  return shape.reduce((n, size, i) => (i === axis ? n : n * size), 1);
}

/** Position in memory of the first element of a line. */
export function lineStart(e: Exprs, view: TensorView, axis: number, line: KNode): KNode {
  return positionOf(e, without(view, axis), line);
}

/** Position in memory of the element at a row-major position. */
export function positionOf(e: Exprs, { shape, strides, shift }: TensorView, flat: KNode): KNode {
  let at: KNode = e.i32(shift);
  let rest = flat;
  const outermost = shape.findIndex((n) => n !== 1);
  // Axes that lie behind each other in memory are one.
  let axis = shape.length - 1;
  while (axis >= 0) {
    let n = shape[axis]!;
    const stride = strides[axis]!;
    axis--;
    while (axis >= 0 && (shape[axis] === 1 || strides[axis] === stride * n)) {
      n *= shape[axis]!;
      axis--;
    }
    if (n === 1) continue;
    const last = axis < outermost;
    at = e.add(at, e.mul(last ? rest : e.irem(rest, n), stride));
    if (!last) rest = e.idiv(rest, n);
  }
  return at;
}
