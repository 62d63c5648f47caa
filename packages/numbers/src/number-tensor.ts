/**
 * NumberTensor: an n-dimensional array of numbers that typed arrays cannot hold, computed at once on the host.
 *
 * It has the shape rules and the names of Tensor, but no graph, no gradients and no engine. What needs many elements at once is in grid.ts and
 * folding.ts, shapes are in shaped-numbers.ts; this class says which function of the number type goes where.
 */
import { readAxes, readAxis, say } from '@polygrad/core/internals';
import type { AxisArgument } from '@polygrad/core/functions';
import { better, checkNotEmpty, fold, powers, product, scan, winner } from './folding.ts';
import { type Grid, grid, mapGrid, zipGrids } from './grid.ts';
import {
  elementOf,
  negation,
  need,
  type NumberLike,
  type NumberType,
  NumberTypeError,
  subtraction,
} from './number-type.ts';
import { booleanType, numberType } from './ready-made.ts';
import { type OneAxis, ShapedNumbers } from './shaped-numbers.ts';

/** What operations accept as an operand. */
export type NumberOperand<T> = NumberTensor<T> | NumberLike<T>;

/**
 * An n-dimensional array of elements of a number type; made by numberTensor. Operations return new ones and leave their operands as they
 * are. Operands broadcast as NumPy's do.
 *
 * @example
 * const a = numberTensor([[1, 1], [1, 0]], bigintType);
 * a.matmul(a).matmul(a).array(); // [[3n, 2n], [2n, 1n]]
 */
export class NumberTensor<T> extends ShapedNumbers<T> {
  protected override like(data: Grid<T>): this {
    return new NumberTensor(this.type, data) as this;
  }

  // Arithmetic, element by element

  /** a + b. */
  add(b: NumberOperand<T>): NumberTensor<T> {
    return this.#with('add', b, this.type.add);
  }

  /** a - b. */
  sub(b: NumberOperand<T>): NumberTensor<T> {
    return this.#with('sub', b, subtraction('sub', this.type));
  }

  /** a * b. */
  mul(b: NumberOperand<T>): NumberTensor<T> {
    return this.#with('mul', b, this.type.mul);
  }

  /** a / b. */
  div(b: NumberOperand<T>): NumberTensor<T> {
    return this.#with('div', b, need('div', this.type, 'div'));
  }

  /** The largest whole number not above a / b. */
  floorDivide(b: NumberOperand<T>): NumberTensor<T> {
    return this.#with('floorDivide', b, need('floorDivide', this.type, 'floorDivide'));
  }

  /** a - b * floorDivide(a, b): the rest with the sign of b. */
  remainder(b: NumberOperand<T>): NumberTensor<T> {
    return this.#with('remainder', b, need('remainder', this.type, 'remainder'));
  }

  /** -x. */
  neg(): NumberTensor<T> {
    return this.like(mapGrid(this.grid, negation('neg', this.type)));
  }

  /** The magnitude of x. */
  abs(): NumberTensor<T> {
    const compare = need('abs', this.type, 'compare');
    const neg = negation('abs', this.type);
    return this.like(mapGrid(this.grid, (a) => (compare(a, this.type.zero) < 0 ? neg(a) : a)));
  }

  /** x * x. */
  square(): NumberTensor<T> {
    return this.like(mapGrid(this.grid, (a) => this.type.mul(a, a)));
  }

  /** x to a whole power, by squaring; negative powers need div. */
  pow(exponent: number | bigint): NumberTensor<T> {
    return this.like(powers(this.grid, this.type, exponent));
  }

  /** The larger of a and b; NaN if either is NaN. */
  maximum(b: NumberOperand<T>): NumberTensor<T> {
    return this.#with('maximum', b, better(need('maximum', this.type, 'compare'), 1));
  }

  /** The smaller of a and b; NaN if either is NaN. */
  minimum(b: NumberOperand<T>): NumberTensor<T> {
    return this.#with('minimum', b, better(need('minimum', this.type, 'compare'), -1));
  }

  /** Any function of the elements, to the same type or another. */
  map(f: (value: T) => T): NumberTensor<T>;
  map<U>(f: (value: T) => U, type: NumberType<U>): NumberTensor<U>;
  map<U>(f: (value: T) => T | U, type?: NumberType<U>): NumberTensor<T> | NumberTensor<U> {
    if (type === undefined) return this.like(mapGrid(this.grid, (value) => elementOf('map', this.type, f(value))));
    return new NumberTensor(
      type,
      mapGrid(this.grid, (value) => elementOf('map', type, f(value))),
    );
  }

  // Comparison

  /** a == b, element by element. */
  equal(b: NumberOperand<T>): NumberTensor<boolean> {
    return this.#test('equal', b, this.type.equals);
  }

  /** a != b. */
  notEqual(b: NumberOperand<T>): NumberTensor<boolean> {
    return this.#test('notEqual', b, (x, y) => !this.type.equals(x, y));
  }

  /** a < b. */
  less(b: NumberOperand<T>): NumberTensor<boolean> {
    const compare = need('less', this.type, 'compare');
    return this.#test('less', b, (x, y) => compare(x, y) < 0);
  }

  /** a <= b. */
  lessEqual(b: NumberOperand<T>): NumberTensor<boolean> {
    const compare = need('lessEqual', this.type, 'compare');
    return this.#test('lessEqual', b, (x, y) => compare(x, y) <= 0);
  }

  /** a > b. */
  greater(b: NumberOperand<T>): NumberTensor<boolean> {
    const compare = need('greater', this.type, 'compare');
    return this.#test('greater', b, (x, y) => compare(x, y) > 0);
  }

  /** a >= b. */
  greaterEqual(b: NumberOperand<T>): NumberTensor<boolean> {
    const compare = need('greaterEqual', this.type, 'compare');
    return this.#test('greaterEqual', b, (x, y) => compare(x, y) >= 0);
  }

  /** These elements where the condition holds, `other` elsewhere. */
  where(condition: NumberTensor<boolean>, other: NumberOperand<T>): NumberTensor<T> {
    const pairs = zipGrids('where', this.grid, this.#operand('where', other), (a, b) => [a, b] as const);
    return this.like(zipGrids('where', condition.grid, pairs, (yes, [a, b]) => (yes ? a : b)));
  }

  // Reductions

  /** The sum of elements; zero of none. */
  sum(axis?: AxisArgument): NumberTensor<T> {
    const { add, zero } = this.type;
    return this.#fold('sum', axis, (row) => (row.length === 0 ? zero : row.reduce((a, b) => add(a, b))));
  }

  /** The product of elements; one of none. */
  prod(axis?: AxisArgument): NumberTensor<T> {
    const { mul, one } = this.type;
    return this.#fold('prod', axis, (row) => (row.length === 0 ? one : row.reduce((a, b) => mul(a, b))));
  }

  /** The sum divided by the number of elements. */
  mean(axis?: AxisArgument): NumberTensor<T> {
    const { add, one } = this.type;
    const div = need('mean', this.type, 'div');
    checkNotEmpty('mean', this.shape, readAxes('mean', axis, this.ndim).axes);
    // The number of elements, as a sum of ones.
    return this.#fold('mean', axis, (row) =>
      div(
        row.reduce((a, b) => add(a, b)),
        row.map(() => one).reduce((a, b) => add(a, b)),
      ),
    );
  }

  /** The largest element; NaN if there is one. */
  max(axis?: AxisArgument): NumberTensor<T> {
    return this.#best('max', axis, 1);
  }

  /** The smallest element; NaN if there is one. */
  min(axis?: AxisArgument): NumberTensor<T> {
    return this.#best('min', axis, -1);
  }

  /** The position of the largest element along an axis, or in row-major order over several or all; the first of equals. */
  argMax(axis?: AxisArgument): NumberTensor<number> {
    return this.#position('argMax', axis, 1);
  }

  /** The position of the smallest element; see argMax. */
  argMin(axis?: AxisArgument): NumberTensor<number> {
    return this.#position('argMin', axis, -1);
  }

  /** True if any element is not zero. */
  any(axis?: AxisArgument): NumberTensor<boolean> {
    const { equals, zero } = this.type;
    const axes = readAxes('any', axis, this.ndim);
    return new NumberTensor(
      booleanType,
      fold(this.grid, axes, (row) => row.some((value) => !equals(value, zero))),
    );
  }

  /** True if no element is zero. */
  all(axis?: AxisArgument): NumberTensor<boolean> {
    const { equals, zero } = this.type;
    const axes = readAxes('all', axis, this.ndim);
    return new NumberTensor(
      booleanType,
      fold(this.grid, axes, (row) => !row.some((value) => equals(value, zero))),
    );
  }

  /** The running sum along an axis. */
  cumSum(axis?: OneAxis): NumberTensor<T> {
    return this.#scan('cumSum', axis, this.type.add);
  }

  /** The running product along an axis. */
  cumProd(axis?: OneAxis): NumberTensor<T> {
    return this.#scan('cumProd', axis, this.type.mul);
  }

  /** The largest element so far along an axis. */
  cumMax(axis?: OneAxis): NumberTensor<T> {
    return this.#scan('cumMax', axis, better(need('cumMax', this.type, 'compare'), 1));
  }

  /** The smallest element so far along an axis. */
  cumMin(axis?: OneAxis): NumberTensor<T> {
    return this.#scan('cumMin', axis, better(need('cumMin', this.type, 'compare'), -1));
  }

  // Products

  /** The matrix product; leading axes broadcast, vectors are rows on the left and columns on the right. */
  matmul(b: NumberTensor<T>): NumberTensor<T> {
    return this.like(product('matmul', this.type, this.grid, this.#operand('matmul', b)));
  }

  /** The sum of products of two vectors of one size; of matrices the matrix product. */
  dot(b: NumberTensor<T>): NumberTensor<T> {
    return this.like(product('dot', this.type, this.grid, this.#operand('dot', b)));
  }

  /** All products of an element of a vector with one of another. */
  outer(b: NumberTensor<T>): NumberTensor<T> {
    return this.reshape([this.size, 1]).mul(b.reshape([1, b.size]));
  }

  #operand(op: string, b: NumberOperand<T>): Grid<T> {
    if (!(b instanceof NumberTensor)) return grid([], [elementOf(op, this.type, b)]);
    if (b.type !== this.type)
      throw new NumberTypeError(
        op,
        say`number types differ: '${this.type.name}' and '${b.type.name}'; convert one with map()`,
      );
    return b.grid;
  }

  #with(op: string, b: NumberOperand<T>, f: (x: T, y: T) => T): NumberTensor<T> {
    return this.like(zipGrids(op, this.grid, this.#operand(op, b), f));
  }

  #test(op: string, b: NumberOperand<T>, f: (x: T, y: T) => boolean): NumberTensor<boolean> {
    return new NumberTensor(booleanType, zipGrids(op, this.grid, this.#operand(op, b), f));
  }

  #fold(op: string, axis: AxisArgument | undefined, f: (row: readonly T[]) => T): NumberTensor<T> {
    return this.like(fold(this.grid, readAxes(op, axis, this.ndim), f));
  }

  #best(op: string, axis: AxisArgument | undefined, sign: 1 | -1): NumberTensor<T> {
    const choose = better(need(op, this.type, 'compare'), sign);
    checkNotEmpty(op, this.shape, readAxes(op, axis, this.ndim).axes);
    return this.#fold(op, axis, (row) => row.reduce((a, b) => choose(a, b)));
  }

  #position(op: string, axis: AxisArgument | undefined, sign: 1 | -1): NumberTensor<number> {
    const choose = better(need(op, this.type, 'compare'), sign);
    const axes = readAxes(op, axis, this.ndim);
    checkNotEmpty(op, this.shape, axes.axes);
    return new NumberTensor(
      numberType,
      fold(this.grid, axes, (row) => winner(row, choose)),
    );
  }

  #scan(op: string, axis: OneAxis | undefined, f: (a: T, b: T) => T): NumberTensor<T> {
    if (this.ndim === 0) return this;
    return this.like(scan(this.grid, readAxis(op, axis, 0, this.ndim), f));
  }
}
