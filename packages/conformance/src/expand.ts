/** Turns operation specs into cases: forward values per dtype and layout, gradients, fused against eager. */
import { type DType, type Tensor, grads, mul, scope, sum } from '@polygrad/core';
import type { ConformanceCase, SkipReason } from './case.ts';
import { assertClose, gamma } from './compare.ts';
import { type Layout, layoutApplies, layouts, makeTensor } from './layouts.ts';
import { checkBatch, checkHigher, checkTangent, weights } from './expand-transforms.ts';
import { arrayOf, arraysOf } from './host.ts';
import { count, map, type NDArray, nd } from './oracle/ndarray.ts';
import { integerFormat, isSmallFloat, nearest, wrap } from './oracle/formats.ts';
import { makeRandom, seedOf } from './oracle/random.ts';
import { type Instance, type OpSpec, resultOf } from './spec.ts';
import type { Target } from './target.ts';

/** All cases of a specification, in dtypes that it does not list too (`OpSpec.more`). */
export function expand(spec: OpSpec, target: Target): ConformanceCase[] {
  const drawn = new Map(spec.instances.map((instance) => [instance, factsOf(draw(spec, instance))]));
  const cases = moreDTypes(spec, drawn, target);
  // Of instances that differ in shape alone, one is enough for the slower cases.
  const lastPlain = spec.instances.filter(({ small, options }) => small && options === undefined).at(-1);
  for (const [instance, { shapes }] of drawn) {
    const applying = layouts.filter((layout) => layout === 'plain' || shapes.some((x) => layoutApplies(layout, x)));
    for (const dtype of spec.dtypes) {
      for (const layout of applying) {
        cases.push({
          name: `${spec.name} / ${instance.label} / ${dtype} / ${layout}`,
          run: guarded(target, dtype, () => checkForward(spec, instance, dtype, layout, target)),
        });
      }
    }
    cases.push({
      name: `${spec.name} / ${instance.label} / ${spec.dtypes[0]} / eager equals fused`,
      run: guarded(target, spec.dtypes[0]!, () => checkEager(spec, instance, spec.dtypes[0]!, target)),
    });
    if (instance.small) {
      const dtype: DType = spec.dtypes.includes('float64') ? 'float64' : spec.dtypes[0]!;
      cases.push({
        name: `${spec.name} / ${instance.label} / ${dtype} / batch`,
        run: guarded(target, dtype, () => checkBatch(spec, instance, target)),
      });
    }
    if (!spec.gradient || !instance.small) continue;
    const telling = instance.options !== undefined || instance === lastPlain;
    if (telling) {
      cases.push({
        name: `${spec.name} / ${instance.label} / float64 / forward`,
        run: guarded(target, 'float64', () => checkTangent(spec, draw(spec, instance), instance, target)),
      });
    }
    cases.push({
      name: `${spec.name} / ${instance.label} / float64 / gradient`,
      run: guarded(target, 'float64', () => checkGradient(spec, instance, target)),
    });
    cases.push({
      name: `${spec.name} / ${instance.label} / float32 / gradient`,
      run: guarded(target, 'float32', () => checkGradient32(spec, instance, target)),
    });
    if (spec.gradient.order === 2) {
      cases.push({
        name: `${spec.name} / ${instance.label} / float64 / gradient of gradient`,
        run: guarded(target, 'float64', () => checkHigher(2, spec, draw(spec, instance), instance, target)),
      });
      if (telling) {
        cases.push({
          name: `${spec.name} / ${instance.label} / float64 / third derivative`,
          run: guarded(target, 'float64', () => checkHigher(3, spec, draw(spec, instance), instance, target)),
        });
      }
    }
  }
  return cases;
}

const others: readonly DType[] = ['int8', 'int16', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'];

/** What decides which cases there are of an instance. Its inputs are drawn again when a case runs: all of them would fill the memory. */
interface Facts {
  readonly shapes: readonly (readonly number[])[];
  readonly negative: boolean;
}

function factsOf(inputs: readonly NDArray[]): Facts {
  return { shapes: inputs.map((a) => a.shape), negative: inputs.some((a) => a.data.some((x) => x < 0)) };
}

/** The smallest and the largest of moderate instances in the dtypes that `dtypes` does not list. */
function moreDTypes(spec: OpSpec, drawn: ReadonlyMap<Instance, Facts>, target: Target): ConformanceCase[] {
  const moderate = [...drawn]
    .map(([instance, { shapes, negative }]) => ({ instance, negative, size: Math.max(0, ...shapes.map(count)) }))
    .filter(({ size }) => size > 1 && size <= 600)
    .sort((a, b) => a.size - b.size);
  const chosen = moderate.length > 1 ? [moderate[0], moderate[moderate.length - 1]] : moderate;
  const cases: ConformanceCase[] = [];
  for (const { instance, negative } of chosen as typeof moderate) {
    const dtypes = spec.more ?? [
      ...(spec.dtypes.includes('float32') ? (['float16', 'bfloat16'] as const) : []),
      ...(spec.dtypes.includes('int32') ? others.filter((d) => !d.startsWith('u') || !negative) : []),
    ];
    for (const dtype of dtypes) {
      if (spec.dtypes.includes(dtype)) continue;
      cases.push({
        name: `${spec.name} / ${instance.label} / ${dtype} / plain`,
        run: guarded(target, dtype, () => checkForward(spec, instance, dtype, 'plain', target)),
      });
    }
  }
  return cases;
}

/** The inputs as the dtype holds them. */
function held(spec: OpSpec, inputs: NDArray[], dtype: DType): NDArray[] {
  return inputs.map((a, i) => {
    const own = spec.inputDTypes?.[i] ?? dtype;
    if (isSmallFloat(own)) return map(a, (x) => nearest(own, x));
    return integerFormat(own) === null ? a : map(a, (x) => Number(wrap(own, BigInt(x))));
  });
}

function guarded(target: Target, dtype: DType, run: () => Promise<void>): () => Promise<undefined | SkipReason> {
  return async () => {
    if (!target.holds(dtype)) return { skip: `the engine does not hold ${dtype}` };
    await run();
    return undefined;
  };
}

/** The inputs of an instance: the same numbers every time. */
export function draw(spec: OpSpec, instance: Instance): NDArray[] {
  return instance.draw(makeRandom(seedOf(`${spec.name}/${instance.label}`)));
}

function tensors(spec: OpSpec, inputs: NDArray[], dtype: DType, layout: Layout): Tensor[] {
  return inputs.map((a, i) =>
    makeTensor(a, spec.inputDTypes?.[i] ?? dtype, layoutApplies(layout, a.shape) ? layout : 'plain'),
  );
}

/** Runs the operation and disposes everything it made. */
async function evaluate(spec: OpSpec, instance: Instance, inputs: NDArray[], dtype: DType, layout: Layout) {
  const given = tensors(spec, inputs, dtype, layout);
  const result = scope(() => spec.run(given, instance.options ?? {}));
  const array = await arrayOf(result);
  for (const t of given) t.dispose();
  return array;
}

async function checkForward(
  spec: OpSpec,
  instance: Instance,
  dtype: DType,
  layout: Layout,
  target: Target,
): Promise<void> {
  const inputs = held(spec, draw(spec, instance), dtype);
  const options = instance.options ?? {};
  const actual = await evaluate(spec, instance, inputs, dtype, layout);
  const wanted = resultOf(spec, dtype);
  if (actual.dtype !== wanted) throw new Error(`result dtype ${actual.dtype} where ${wanted} is expected`);
  const tolerance = target.tolerances.forward[wanted];
  if (!tolerance) throw new Error(`no forward tolerance for ${wanted}`);
  let slack: NDArray | undefined;
  if (spec.terms && dtype === 'float32') {
    const bound = gamma(spec.terms(inputs, options));
    slack = map(
      spec.oracle(
        inputs.map((a) => map(a, Math.abs)),
        options,
      ),
      (m) => bound * Math.abs(m),
    );
  }
  let expected = spec.oracle(inputs, options);
  if (isSmallFloat(wanted)) expected = map(expected, (x) => nearest(wanted, x));
  else if (integerFormat(wanted) !== null) expected = map(expected, (x) => Number(wrap(wanted, BigInt(x))));
  assertClose('value', actual.data, actual.shape, expected, tolerance, slack);
}

async function checkEager(spec: OpSpec, instance: Instance, dtype: DType, target: Target): Promise<void> {
  const inputs = draw(spec, instance);
  const fused = await evaluate(spec, instance, inputs, dtype, 'plain');
  const eager = await target.eagerly(() => evaluate(spec, instance, inputs, dtype, 'plain'));
  const tolerance = target.tolerances.forward[resultOf(spec, dtype)] ?? { rtol: 0, atol: 0 };
  assertClose('eager value', eager.data, eager.shape, fused, tolerance);
}

/** sum(op(inputs) * weights) and its gradients by the library, as host arrays. */
async function libraryGradients(spec: OpSpec, instance: Instance, inputs: NDArray[], dtype: DType): Promise<NDArray[]> {
  const of = spec.gradient?.of ?? [];
  const options = instance.options ?? {};
  const w = weights(spec, spec.oracle(inputs, options).shape, 'w');
  const given = tensors(spec, inputs, dtype, 'plain');
  const weight = makeTensor(w, dtype);
  const loss = (...xs: Tensor[]): Tensor => {
    const all = [...given];
    of.forEach((position, i) => {
      all[position] = xs[i]!;
    });
    return sum(mul(spec.run(all, options), weight));
  };
  const result = grads(loss)(...of.map((position) => given[position]!));
  const arrays = await arraysOf(result);
  for (const t of [...given, weight]) t.dispose();
  return arrays;
}

async function checkGradient(spec: OpSpec, instance: Instance, target: Target): Promise<void> {
  const inputs = draw(spec, instance);
  const options = instance.options ?? {};
  const w = weights(spec, spec.oracle(inputs, options).shape, 'w');
  const actual = await libraryGradients(spec, instance, inputs, 'float64');
  const tolerance = target.tolerances.finiteDifference.float64;
  if (!tolerance) throw new Error('no finite-difference tolerance for float64');
  const value = (arrays: NDArray[]): number =>
    spec.oracle(arrays, options).data.reduce((total, y, i) => total + y * w.data[i]!, 0);
  const step = 1e-6;
  for (const [i, position] of (spec.gradient?.of ?? []).entries()) {
    const input = inputs[position]!;
    const expected = input.data.map((x, at) => {
      const moved = (delta: number): NDArray[] =>
        inputs.map((a, j) =>
          j === position
            ? nd(
                a.shape,
                a.data.map((v, q) => (q === at ? x + delta : v)),
              )
            : a,
        );
      return (value(moved(step)) - value(moved(-step))) / (2 * step);
    });
    const gradient = actual[i]!;
    assertClose(`gradient by input ${position}`, gradient.data, gradient.shape, nd(input.shape, expected), tolerance);
  }
}

async function checkGradient32(spec: OpSpec, instance: Instance, target: Target): Promise<void> {
  if (!target.holds('float64')) return;
  const inputs = draw(spec, instance);
  const wide = await libraryGradients(spec, instance, inputs, 'float64');
  const narrow = await libraryGradients(spec, instance, inputs, 'float32');
  const { rtol, atol } = target.tolerances.gradient.float32 ?? { rtol: 0, atol: 0 };
  wide.forEach((expected, i) => {
    const actual = narrow[i]!;
    const largest = expected.data.reduce((m, x) => Math.max(m, Math.abs(x)), 0);
    assertClose(`float32 gradient ${i}`, actual.data, actual.shape, expected, { rtol, atol: atol * largest });
  });
}
