/**
 * Results of another framework: the calls of the golden file, made with the library, compared at the contract's tolerances.
 *
 * The file says what is called and with what; this knows no operation by name. float32 is compared with what float64
 * arithmetic makes of the same float32 inputs, so no other rounding enters.
 */
import * as core from '@polygrad/core';
import * as linearAlgebra from '@polygrad/core/linear-algebra';
import type { DType, Tensor } from '@polygrad/core';
import type { ConformanceCase, SkipReason } from '../case.ts';
import { assertClose, gamma, type Tolerance } from '../compare.ts';
import type { Target } from '../target.ts';
import { elementsOf } from '../host.ts';
import { draw, makeArgument, viewedShape, type Drawn } from '../goldens/draw.ts';
import type { CaseNumbers, Coded, GoldenCase } from '../goldens/file.ts';
import { touchedByDenormals } from '../denormals.ts';
import { isDenormal } from '../oracle/units.ts';
import { count, nd } from '../oracle/ndarray.ts';
import { lostByElimination } from './matrices.ts';

type Result = Tensor | readonly Result[] | { readonly [name: string]: Tensor };
type Call = (...args: unknown[]) => Result | Promise<Result>;
const library = { ...core, ...linearAlgebra } as unknown as Readonly<Record<string, Call | undefined>>;
const cotangents = ['u', 0.5, 1.5] as const;
/** Functions of a matrix whose float32 results lose digits by how near to a singular one it is. */
const byElimination = ['solve', 'inv', 'det'];

/** Cases of the file: all of them in all their dtypes, or half of them in one dtype each, in turns. What the library does not have yet is skipped, and so counted, by operation. */
export function goldenCases(goldens: readonly GoldenCase[] | null, long: boolean, target: Target): ConformanceCase[] {
  if (goldens === null) {
    const skip = 'no golden file was given (in Node the package finds its own)';
    return [{ name: 'goldens / file', run: async () => ({ skip }) }];
  }
  return goldens.flatMap((golden, at) =>
    golden.dtypes
      .filter((_, i, { length }) => long || (at % 4 < 2 && at % length === i))
      .map((dtype) => ({
        name: `goldens / ${golden.op} / ${golden.label} / ${dtype}`,
        run: async (): Promise<undefined | SkipReason> => {
          if (library[golden.op] === undefined) return { skip: `goldens: the library has no ${golden.op} yet` };
          const made = golden.results.flatMap(([, kind]) => (kind === 'same' ? [] : [kind]));
          const missing = [
            dtype,
            ...golden.tensors.map((t) => t.d ?? dtype),
            ...(golden.op === 'cast' ? made : []),
          ].find((d) => !target.holds(d));
          if (missing !== undefined) return { skip: `the engine does not hold ${missing}` };
          await check(golden, dtype, target);
          return undefined;
        },
      })),
  );
}

function decodeAll(members: Readonly<Record<string, Coded>>, tensors: readonly Tensor[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([key, v]) => [key, decode(v, tensors)]));
}

/** Replaces tensor numbers by tensors. */
function decode(value: Coded, tensors: readonly Tensor[]): unknown {
  if (Array.isArray(value)) return value.map((v: Coded) => decode(v, tensors));
  if (typeof value !== 'object' || value === null) return value;
  const { t, n } = value as { readonly t?: Coded; readonly n?: Coded };
  if (typeof t === 'number') return tensors[t];
  if (typeof n === 'string') return n === 'inf' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  return decodeAll(value as Readonly<Record<string, Coded>>, tensors);
}

/** Makes the call of a golden case. */
export function callGolden({ op, args, options }: GoldenCase, tensors: readonly Tensor[]): Result | Promise<Result> {
  const values = args.map((a) => decode(a, tensors));
  if (options !== null) values.push(decodeAll(options, tensors));
  return (library[op] as Call)(...values);
}

/** The tensors of a result: itself, the elements of a list, or the members of an object. */
function tensorsOf(result: Result): Tensor[] {
  if (core.isTensor(result)) return [result];
  return Object.values(result).flatMap((part) => (part === undefined ? [] : tensorsOf(part)));
}

/** The tensors that a golden case is called with. */
export function goldenArguments(golden: GoldenCase, dtype: DType, numbers: CaseNumbers = golden.numbers()): Tensor[] {
  const name = `${golden.op} / ${golden.label}`;
  return golden.tensors.map((t, i) => makeArgument(t, dtype, `${name}/${i}`, numbers.inputs.get(i) ?? []));
}

async function check(golden: GoldenCase, dtype: DType, target: Target): Promise<void> {
  const numbers = golden.numbers();
  const name = `${golden.op} / ${golden.label}`;
  const given = goldenArguments(golden, dtype, numbers);
  try {
    if (golden.by.length === 0) await checkValues(golden, given, numbers, dtype, target);
    else await checkGradients(golden, name, given, numbers, dtype, target);
  } finally {
    for (const t of given) t.dispose();
  }
}

async function checkValues(
  golden: GoldenCase,
  given: readonly Tensor[],
  numbers: CaseNumbers,
  dtype: DType,
  target: Target,
): Promise<void> {
  const outputs = tensorsOf(await callGolden(golden, given));
  try {
    core.flush();
    if (outputs.length !== golden.results.length)
      throw new Error(`${outputs.length} results where ${golden.results.length} are expected`);
    for (const [i, output] of outputs.entries()) await checkValue(golden, i, output, given, numbers, dtype, target);
  } finally {
    for (const t of outputs) t.dispose();
  }
}

async function checkValue(
  golden: GoldenCase,
  i: number,
  output: Tensor,
  given: readonly Tensor[],
  numbers: CaseNumbers,
  dtype: DType,
  target: Target,
): Promise<void> {
  const [shape, kind, text] = golden.results[i] as GoldenCase['results'][number];
  const what = golden.results.length > 1 ? `value ${i}` : 'value';
  const actual = await elementsOf(output);
  const touched = dtype === 'float32' ? touchedElements(golden, output.shape, target) : null;
  if (kind.includes('int')) {
    // Integers are compared whatever width the library gives counts and positions.
    const expected = text?.map(BigInt) ?? (numbers.results[i] as readonly number[]).map(BigInt);
    if (output.shape.join() !== shape.join())
      throw new Error(`${what}: shape [${output.shape}] where [${shape}] is expected`);
    const bad = expected.findIndex((x, at) => !touched?.[at] && BigInt(actual[at] as number | bigint) !== x);
    if (bad >= 0) throw new Error(`${what}: element ${bad} is ${actual[bad]} where ${expected[bad]} is expected`);
    return;
  }
  const wanted: DType = kind === 'same' ? dtype : kind;
  if (output.dtype !== wanted) throw new Error(`${what}: dtype ${output.dtype} where ${wanted} is expected`);
  const tolerance = target.tolerances.forward[wanted];
  if (tolerance === undefined) throw new Error(`no forward tolerance for ${wanted}`);
  const expected = (numbers.results[i] as readonly number[]).map((x, at) =>
    touched?.[at] ? Number(actual[at]) : dtype === 'float32' && !Number.isFinite(Math.fround(x)) ? Math.fround(x) : x,
  );
  let slack: ReturnType<typeof nd> | undefined;
  if (golden.terms !== null && numbers.magnitudes !== null && i === 0 && dtype === 'float32') {
    const bound = gamma(golden.terms);
    slack = nd(
      shape,
      numbers.magnitudes.map((m) => bound * m),
    );
  }
  if (dtype === 'float32' && byElimination.includes(golden.op)) {
    const matrices = nd(given[0]!.shape, Array.from(await elementsOf(given[0]!), Number));
    slack = lostByElimination(matrices, nd(shape, expected));
  }
  assertClose(what, actual, output.shape, nd(shape, expected), tolerance, slack);
}

/**
 * Elements that are not compared: a denormal number goes into them, and the engine takes it for 0, which the contract lets it do. Null where
 * there are none.
 */
function touchedElements(golden: GoldenCase, shape: readonly number[], target: Target): readonly boolean[] | null {
  if (!target.flushesDenormals) return null;
  // Only numbers that are written out are so small.
  const operands = golden.tensors.map((t) => ({
    shape: viewedShape(t),
    values: t.k[0] === 'l' && t.v === undefined ? draw(t.k, '', count(t.s)) : [],
  }));
  if (!operands.some(({ values }) => Array.from(values, Number).some((x) => isDenormal('float32', x)))) return null;
  return touchedByDenormals(operands, 'float32', shape);
}

/** Value and vector-Jacobian product in one run; in float64 also the gradient of <gradient, v>. */
async function checkGradients(
  golden: GoldenCase,
  name: string,
  given: readonly Tensor[],
  numbers: CaseNumbers,
  dtype: DType,
  target: Target,
): Promise<void> {
  const made = (shape: readonly number[], key: string): Tensor =>
    core.tensor(draw(cotangents, `${name}/${key}`, count(shape)) as number[], { dtype, shape: [...shape] });
  const floats = golden.results.flatMap(([shape, kind], i) => (kind === 'same' ? [{ shape, i }] : []));
  const weights = floats.map(({ shape, i }) => made(shape, `w${i}`));
  const leaves = golden.by.map((i) => given[i]!);
  const primal = (...xs: Tensor[]): Tensor[] => {
    const all = [...given];
    golden.by.forEach((position, i) => {
      all[position] = xs[i]!;
    });
    const outputs = tensorsOf(callGolden(golden, all) as Result);
    return floats.map(({ i }) => outputs[i]!);
  };
  const mine: Tensor[] = [...weights];
  try {
    const [outputs, first] = core.vjp(primal, leaves, weights);
    mine.push(...outputs, ...first);
    let second: Tensor[] = [];
    if (golden.twice && dtype === 'float64') {
      const probes = golden.by.map((i) => made(viewedShape(golden.tensors[i]!), `v${i}`));
      mine.push(...probes);
      const slope = (...xs: Tensor[]): Tensor => {
        const [, gradients] = core.vjp(primal, xs, weights);
        return gradients.map((g, i) => core.sum(core.mul(g, probes[i]!))).reduce((a, b) => core.add(a, b));
      };
      second = core.grads(slope)(...leaves);
      mine.push(...second);
    }
    core.flush();
    for (const [at, { i }] of floats.entries())
      await checkValue(golden, i, outputs[at]!, given, numbers, dtype, target);
    await checkSlopes('gradient', golden, first, numbers.first, dtype, target);
    await checkSlopes('gradient of gradient', golden, second, numbers.second.slice(0, second.length), dtype, target);
    if (floats.length < golden.results.length) await checkValues(golden, given, numbers, dtype, target);
  } finally {
    for (const t of mine) t.dispose();
  }
}

/** float64: 1e-6 and 1e-7; float32: 1.3e-5 and 1e-4 of the largest entry. */
async function checkSlopes(
  what: string,
  golden: GoldenCase,
  actual: readonly Tensor[],
  expected: readonly (readonly number[])[],
  dtype: DType,
  target: Target,
): Promise<void> {
  const rule: Tolerance | undefined = target.tolerances.gradient[dtype];
  if (rule === undefined) throw new Error(`no gradient tolerance for ${dtype}`);
  for (const [i, slope] of expected.entries()) {
    const t = actual[i]!;
    const largest = dtype === 'float64' ? 1 : slope.reduce((m, x) => Math.max(m, Math.abs(x)), 0);
    const shape = viewedShape(golden.tensors[golden.by[i] as number] as Drawn);
    const tolerance = { rtol: rule.rtol, atol: rule.atol * largest };
    assertClose(`${what} by tensor ${golden.by[i]}`, await elementsOf(t), t.shape, nd(shape, slope), tolerance);
  }
}
