/**
 * Two devices for one program. On `cpu` a batch is a matrix of Values, computed number by number as it is written. On `gpu` it is one tensor of Polygrad,
 * whose operations are recorded and run as kernels of whatever engine is there.
 *
 * A device is the few operations that a network needs. Networks are written with these alone, so they do not know where they run.
 */
import { noGrad, scope, type Tensor, tensor } from '@polygrad/core';
import { sumOf, Value } from './value.ts';

/** A matrix of Values. */
export type Matrix = readonly (readonly Value[])[];

/** What a network is written with. `T` is what the device computes on: matrices of Values, or tensors. */
export interface Device<T> {
  readonly name: 'cpu' | 'gpu';
  /** Numbers as data, or as parameters if `trained`. */
  from(rows: readonly (readonly number[])[], trained?: boolean): T;
  /** The numbers. */
  read(x: T): Promise<number[][]>;
  /** x times w, plus a row b for every row. */
  linear(x: T, w: T, b: T): T;
  tanh(x: T): T;
  relu(x: T): T;
  /** The mean of the squared differences, as a matrix of one number. */
  meanSquare(x: T, y: T): T;
  /** The gradients of a loss, in the order of the parameters. */
  gradients(loss: T, parameters: readonly T[]): T[];
  /** Moves a parameter one step down its gradient, in place. */
  update(parameter: T, gradient: T, rate: number): void;
  /** Runs a step, and disposes its temporaries, except its result. */
  scope<R>(step: () => R): R;
}

const each = (x: Matrix, f: (v: Value) => Value): Matrix => x.map((row) => row.map(f));

/**
 * Scalars: every number is a Value.
 *
 * @example
 * const x = cpu.from([[1, -2]]);
 * await cpu.read(cpu.relu(x)); // [[1, 0]]
 */
export const cpu: Device<Matrix> = {
  name: 'cpu',
  from: (rows) => rows.map((row) => row.map((n) => new Value(n))),
  read: async (x) => x.map((row) => row.map((v) => v.data)),
  linear: (x, w, b) => x.map((row) => b[0]!.map((bias, j) => sumOf(row.map((v, i) => v.mul(w[i]![j]!))).add(bias))),
  tanh: (x) => each(x, (v) => v.tanh()),
  relu: (x) => each(x, (v) => v.relu()),
  meanSquare: (x, y) => {
    const squares = x.flatMap((row, i) => row.map((v, j) => v.sub(y[i]![j]!).pow(2)));
    return [[sumOf(squares).div(squares.length)]];
  },
  gradients: (loss, parameters) => {
    loss[0]![0]!.backward();
    return parameters.map((p) => p.map((row) => row.map((v) => new Value(v.grad))));
  },
  update: (parameter, gradient, rate) => {
    for (const [i, row] of parameter.entries())
      for (const [j, v] of row.entries()) v.data -= rate * gradient[i]![j]!.data;
  },
  scope: (step) => step(),
};

/** Tensors: a batch is one value, and an operation one node, however many numbers there are. The engine is the one that is set. */
export const gpu: Device<Tensor> = {
  name: 'gpu',
  from: (rows, trained = false) => tensor(rows as number[][], { requiresGrad: trained }),
  read: async (x) => (await x.array()) as number[][],
  linear: (x, w, b) => x.matmul(w).add(b),
  tanh: (x) => x.tanh(),
  relu: (x) => x.relu(),
  meanSquare: (x, y) => x.sub(y).square().mean().reshape([1, 1]),
  gradients: (loss, parameters) => {
    for (const p of parameters) p.grad = null;
    loss.sum().backward();
    return parameters.map((p) => p.grad!);
  },
  update: (parameter, gradient, rate) => noGrad(() => parameter.assign(parameter.sub(gradient.mul(rate)))),
  scope,
};
