/**
 * Cases that every operation gets by its gradient: second and third derivatives, changes forward (jvp), and batches (vmap).
 */
import { add, grads, jvp, mul, rsqrt, scope, sum, type Tensor, vmap } from '@polygrad/core';
import { assertClose } from './compare.ts';
import { arrayOf } from './host.ts';
import { makeTensor } from './layouts.ts';
import { count, type NDArray, nd } from './oracle/ndarray.ts';
import { makeRandom, sample, seedOf, uniform } from './oracle/random.ts';
import { type Instance, type OpSpec, resultOf } from './spec.ts';
import type { Target } from './target.ts';

const step = 1e-6;

/** Fixed weights that make a scalar of any result, so that every element's derivative is seen. */
export function weights(spec: OpSpec, shape: readonly number[], salt: string): NDArray {
  return sample(makeRandom(seedOf(`${spec.name}/${shape}/${salt}`)), shape, uniform(0.5, 1.5));
}

function finiteDifference(target: Target): { readonly rtol: number; readonly atol: number } {
  return target.tolerances.finiteDifference.float64 ?? { rtol: 0, atol: 0 };
}

/** The operation as a function of the inputs to differentiate, with everything it needs on the engine. */
class Problem {
  readonly of: readonly number[];
  readonly inputs: readonly NDArray[];
  readonly spec: OpSpec;
  readonly instance: Instance;
  readonly #made: Tensor[] = [];

  constructor(spec: OpSpec, instance: Instance, inputs: readonly NDArray[]) {
    this.spec = spec;
    this.instance = instance;
    this.inputs = inputs;
    this.of = spec.gradient?.of ?? [];
  }

  /** A tensor that lives until the end of the case. */
  hold(t: Tensor): Tensor {
    this.#made.push(t);
    return t;
  }

  wide(a: NDArray): Tensor {
    return this.hold(makeTensor(a, 'float64'));
  }

  /** Inputs moved by `delta` along the directions. */
  moved(directions: readonly NDArray[], delta: number): NDArray[] {
    return this.inputs.map((a, j) => {
      const i = this.of.indexOf(j);
      if (i < 0) return a;
      return nd(
        a.shape,
        a.data.map((x, q) => x + delta * directions[i]!.data[q]!),
      );
    });
  }

  /** The inputs to differentiate, as tensors. */
  points(inputs: readonly NDArray[] = this.inputs): Tensor[] {
    return this.of.map((position) => this.wide(inputs[position]!));
  }

  /** The operation on float64, the other inputs fixed. */
  run(): (...xs: Tensor[]) => Tensor {
    const { spec, instance } = this;
    const all = this.inputs.map((a, i) => this.hold(makeTensor(a, spec.inputDTypes?.[i] ?? 'float64')));
    return (...xs) => {
      const given = [...all];
      this.of.forEach((position, i) => {
        given[position] = xs[i]!;
      });
      return spec.run(given, instance.options ?? {});
    };
  }

  directions(salt: string): NDArray[] {
    return this.of.map((position) => weights(this.spec, this.inputs[position]!.shape, `${salt}${position}`));
  }

  resultWeights(): NDArray {
    return weights(this.spec, this.spec.oracle([...this.inputs], this.instance.options ?? {}).shape, 'w');
  }

  dispose(): void {
    for (const t of this.#made) t.dispose();
  }
}

type Scalar = (...xs: Tensor[]) => Tensor;

/** <gradient of f, directions>. */
function along(f: Scalar, directions: readonly Tensor[]): Scalar {
  return (...xs) =>
    grads(f)(...xs)
      .map((g, i) => sum(mul(g, directions[i]!)))
      .reduce((a, b) => a.add(b));
}

async function numberOf(f: Scalar, xs: readonly Tensor[]): Promise<number> {
  return (await arrayOf(scope(() => f(...xs)))).data[0]!;
}

/** Salts of the directions that are taken one after the other, and the name of what comes out. */
const higher = {
  2: { salts: ['v', 'd'], name: 'second derivative along a direction' },
  3: { salts: ['v', 'd', 'third'], name: 'third derivative' },
} as const;

/** A derivative along directions against the central difference of the one before. */
export async function checkHigher(
  order: keyof typeof higher,
  spec: OpSpec,
  inputs: NDArray[],
  instance: Instance,
  target: Target,
): Promise<void> {
  const problem = new Problem(spec, instance, inputs);
  if (count(inputs[problem.of[0]!]!.shape) === 0) return;
  const run = problem.run();
  const weight = problem.wide(problem.resultWeights());
  const { salts, name } = higher[order];
  const directions = salts.map((salt) => problem.directions(salt));
  const last = directions[directions.length - 1]!;
  const wide = (arrays: readonly NDArray[]): Tensor[] => arrays.map((a) => problem.wide(a));
  // Not linear in the result, so that gradients depend on the gradients that come in.
  const bent = (y: Tensor): Tensor => add(y, mul(y, rsqrt(add(mul(y, y), 1))));
  const loss: Scalar = (...xs) => sum(mul(bent(run(...xs)), weight));
  const before = directions.slice(0, -1).reduce((f, some) => along(f, wide(some)), loss);
  const actual = await numberOf(along(before, wide(last)), problem.points());
  const high = await numberOf(before, problem.points(problem.moved(last, step)));
  const low = await numberOf(before, problem.points(problem.moved(last, -step)));
  problem.dispose();
  assertClose(name, [actual], [], nd([], [(high - low) / (2 * step)]), finiteDifference(target));
}

/** The change of the result by jvp against the central difference of the oracle. */
export async function checkTangent(spec: OpSpec, inputs: NDArray[], instance: Instance, target: Target): Promise<void> {
  const problem = new Problem(spec, instance, inputs);
  const options = instance.options ?? {};
  const ahead = problem.directions('t');
  const run = problem.run();
  const points = problem.points();
  const tangents = ahead.map((a) => problem.wide(a));
  const [value, change] = jvp((...xs: Tensor[]) => run(...xs), points, tangents);
  const actual = await arrayOf(change);
  value.dispose();
  problem.dispose();
  const high = spec.oracle(problem.moved(ahead, step), options);
  const low = spec.oracle(problem.moved(ahead, -step), options);
  const expected = high.data.map((y, i) => (y - low.data[i]!) / (2 * step));
  assertClose('change of the result', actual.data, actual.shape, nd(high.shape, expected), finiteDifference(target));
}

/** Two examples at once by vmap against the oracle on each. */
export async function checkBatch(spec: OpSpec, instance: Instance, target: Target): Promise<void> {
  const options = instance.options ?? {};
  const dtype = spec.dtypes.includes('float64') ? 'float64' : (spec.dtypes[0] as 'float64');
  const examples = ['one', 'two'].map((salt) =>
    instance.draw(makeRandom(seedOf(`${spec.name}/${instance.label}/${salt}`))),
  );
  const [one, two] = examples as [NDArray[], NDArray[]];
  const batch = one.map((a, i) => {
    const b = two[i]!;
    return makeTensor(nd([2, ...a.shape], [...a.data, ...b.data]), spec.inputDTypes?.[i] ?? dtype);
  });
  const result = scope(() => vmap((...xs: Tensor[]) => spec.run(xs, options))(...batch));
  const actual = await arrayOf(result);
  const wanted = resultOf(spec, dtype);
  for (const t of batch) t.dispose();
  const expected = examples.map((inputs) => spec.oracle(inputs, options)) as [NDArray, NDArray];
  const tolerance = target.tolerances.forward[wanted];
  if (!tolerance) throw new Error(`no forward tolerance for ${wanted}`);
  const whole = nd([2, ...expected[0].shape], [...expected[0].data, ...expected[1].data]);
  assertClose('batch', actual.data, actual.shape, whole, tolerance);
}
