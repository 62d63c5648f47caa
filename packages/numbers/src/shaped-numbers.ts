/**
 * ShapedNumbers: what NumberTensors do without looking at their elements - reading, shapes, axes and parts. Views share their elements.
 */
import {
  normalizeAxes,
  normalizeAxis,
  readAxis,
  resolveShape,
  resolveSlices,
  say,
  sizeOf,
  sliceView,
} from '@polygrad/core/internals';
import { type Shape, ShapeError, showShape, type SliceSpec } from '@polygrad/core/functions';
import { showAs } from '@polygrad/core/engine';
import { elements, formatGrid, type Grid, joined, nested, permuted, reshaped, stretch } from './grid.ts';
import type { NumberType } from './number-type.ts';

/** One axis, by itself or as { axis }. */
export type OneAxis = number | { readonly axis?: number };

export abstract class ShapedNumbers<T> {
  readonly type: NumberType<T>;
  /** Shape, strides and elements; for extensions. */
  readonly grid: Grid<T>;

  constructor(type: NumberType<T>, data: Grid<T>) {
    this.type = type;
    this.grid = data;
  }

  /** Numbers of the same type on another grid. */
  protected abstract like(data: Grid<T>): this;

  /** Sizes of the axes; [] for a scalar. */
  get shape(): Shape {
    return this.grid.shape;
  }

  /** Number of axes. */
  get ndim(): number {
    return this.shape.length;
  }

  /** Number of elements. */
  get size(): number {
    return sizeOf(this.shape);
  }

  // Reading

  /** Elements in row-major order, in a new array. */
  data(): T[] {
    return [...elements(this.grid)];
  }

  /** Elements as nested arrays; the element itself for a scalar. */
  array(): unknown {
    return nested(this.grid);
  }

  /** The only element. Throws ShapeError if there are more or none. */
  item(): T {
    if (this.size !== 1)
      throw new ShapeError('item', say`${this.size} elements in shape ${showShape(this.shape)}: needs exactly one`, [
        this.shape,
      ]);
    return elements(this.grid)[0]!;
  }

  /** Writes the elements to the console, as NumPy does. */
  print(): void {
    console.log(this.format());
  }

  /** Elements as text: rows aligned. */
  format(): string {
    return formatGrid(this.grid, this.type.toText);
  }

  /** Type and shape as text. */
  toString(): string {
    return `NumberTensor ${this.type.name} ${showShape(this.shape)}`;
  }

  // Shape

  /** The elements in row-major order under another shape; one size may be -1. */
  reshape(shape: Shape): this {
    const to = resolveShape('reshape', this.shape, shape);
    if (sizeOf(to) !== this.size)
      throw new ShapeError(
        'reshape',
        say`sizes differ: ${showShape(this.shape)} has ${this.size} elements, ${showShape(to)} has ${sizeOf(to)}`,
        [this.shape, to],
      );
    return this.like(reshaped(this.grid, to));
  }

  /** All axes as one. */
  flatten(): this {
    return this.reshape([this.size]);
  }

  /** Axes in another order: axis i of the result is axis axes[i]. */
  permute(axes: readonly number[]): this {
    const order = axes.map((axis) => normalizeAxis('permute', axis, this.ndim));
    if (order.length !== this.ndim || new Set(order).size !== this.ndim)
      throw new ShapeError(
        'permute',
        say`axes ${showShape(axes)} for shape ${showShape(this.shape)}: name every axis once`,
        [this.shape],
      );
    return this.like(permuted(this.grid, order));
  }

  /** Two axes exchanged; the last two if none are named. */
  transpose(axis1: number = -2, axis2: number = -1): this {
    const order = this.shape.map((_, i) => i);
    const [a, b] = [normalizeAxis('transpose', axis1, this.ndim), normalizeAxis('transpose', axis2, this.ndim)];
    order[a] = b;
    order[b] = a;
    return this.like(permuted(this.grid, order));
  }

  /** Stretched to a shape without a copy: axes of size 1, and missing leading axes, are repeated. */
  broadcastTo(shape: Shape): this {
    return this.like(stretch('broadcastTo', this.grid, [...shape]));
  }

  /** Like broadcastTo; -1 keeps the size of an axis. */
  expand(shape: Shape): this {
    const missing = shape.length - this.ndim;
    return this.like(
      stretch(
        'expand',
        this.grid,
        shape.map((n, i) => (n === -1 ? (this.shape[i - missing] ?? -1) : n)),
      ),
    );
  }

  /** Without axes of size 1: all of them, or those named. */
  squeeze(axis?: number | readonly number[]): this {
    const axes = normalizeAxes('squeeze', axis, this.ndim);
    if (axis !== undefined && axes.some((a) => this.shape[a] !== 1))
      throw new ShapeError('squeeze', say`an axis of ${showShape(axes)} is not 1 in ${showShape(this.shape)}`, [
        this.shape,
      ]);
    return this.like(
      reshaped(
        this.grid,
        this.shape.filter((n, i) => n !== 1 || !axes.includes(i)),
      ),
    );
  }

  /** With an axis of size 1 put in. */
  unsqueeze(axis: number): this {
    const at = normalizeAxis('unsqueeze', axis, this.ndim + 1);
    return this.like(reshaped(this.grid, [...this.shape.slice(0, at), 1, ...this.shape.slice(at)]));
  }

  /** A part, one specification per axis: a range, a position (the axis disappears), or null for all. */
  slice(specs: readonly SliceSpec[]): this {
    const { start, length, step, kept } = resolveSlices('slice', this.shape, specs);
    const part = { shape: length, view: sliceView(this.grid.view, start, step), data: this.grid.data };
    return this.like(reshaped(part, kept));
  }

  /** The same as slice, with the specifications as arguments. */
  at(...specs: SliceSpec[]): this {
    return this.slice(specs);
  }

  /** One position of an axis; the axis disappears. */
  select(axis: number, index: number): this {
    const at = normalizeAxis('select', axis, this.ndim);
    return this.slice(this.shape.map((_, i) => (i === at ? index : null)));
  }

  /** The order along axes reversed; along all if none are named. */
  flip(axis?: number | readonly number[]): this {
    const axes = normalizeAxes('flip', axis, this.ndim);
    return this.slice(this.shape.map((_, i) => (axes.includes(i) ? { step: -1 } : null)));
  }

  /** The slices at the positions along an axis. */
  take(positions: readonly number[], axis: OneAxis = 0): this {
    const at = readAxis('take', axis, 0, this.ndim);
    const parts = positions.map((i) => this.select(at, i).unsqueeze(at).grid);
    if (parts.length > 0) return this.like(joined(parts, at));
    return this.slice(this.shape.map((_, i) => (i === at ? { stop: 0 } : null)));
  }
}

// Numbers on the host: the console shows them. JSON knows no bigints, and no types of users.
showAs(
  ShapedNumbers.prototype,
  (t) => t.toString(),
  (t) => `${t}${t.size > 1000 ? '' : ` ${t.format()}`}`,
);
