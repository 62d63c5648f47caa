/**
 * What the suite checks as a step of a random program: an operation with the options of one of its cases, compositions and loops too, at operands
 * that the case draws. Before it other steps give the operands, behind it others use the result.
 */
import type { DType, Tensor } from '@polygrad/core';
import { count, flip, map, type NDArray, permute } from '../oracle/ndarray.ts';
import { makeRandom } from '../oracle/random.ts';
import { families } from '../operations/registry.ts';
import type { Choices } from '../programs/choices.ts';
import { isFloat, type Made } from '../programs/pool.ts';
import { Ref, type Value } from '../programs/program.ts';
import { type Instance, type OpSpec, resultOf } from '../spec.ts';
import { compositionSpecs } from '../suites/compositions.ts';
import { loopSpecs } from '../suites/loops.ts';

/** An operation, or a composition, and what the suite checks of it. */
interface Checked {
  readonly op: string;
  readonly specs: readonly OpSpec[];
}

/** By turns, so that a family with many members is not met more often. Specs are made once: their instances are told apart by identity. */
const turns: readonly (readonly Checked[])[] = [
  ...Object.values(families).map((rows) => rows.map(({ name, specs }) => ({ op: name, specs }))),
  compositionSpecs().map((spec) => ({ op: spec.name, specs: [spec] })),
  loopSpecs().map((spec) => ({ op: spec.name, specs: [spec] })),
];

/** Elements of an operand, and of a result. */
const most = 700;

export interface SuiteSettings {
  readonly dtypes: readonly DType[];
  readonly smooth: boolean;
}

/** The dtypes that a spec can be drawn in; with derivatives only where all that has one is differentiated in the suite. */
function dtypesOf(spec: OpSpec, inputs: number, { dtypes, smooth }: SuiteSettings): DType[] {
  const given = Object.values(spec.inputDTypes ?? {});
  const held = (dtype: DType): boolean => dtypes.includes(dtype) || (smooth && !isFloat(dtype));
  if (!given.every(held)) return [];
  if (!smooth) return spec.dtypes.filter((dtype) => held(dtype) && held(resultOf(spec, dtype)));
  const of = spec.gradient?.of ?? [];
  const all = Array.from({ length: inputs }, (_, i) => i).every(
    (i) => of.includes(i) || (spec.inputDTypes?.[i] ?? 'float64') !== 'float64',
  );
  return all && of.length > 0 ? spec.dtypes.filter((dtype) => dtype === 'float64') : [];
}

/** A step of the program, added by the builder; null where it is of no use. */
type Add = (name: string, made: Made) => Value | null;
type Input = (dtype: DType, shape: readonly number[], data: readonly number[]) => Value;

/** A value with these elements, to the bit, as input or from another step: negated, turned around, or across. Null where that is of no use. */
function operandOf(c: Choices, a: NDArray, dtype: DType, add: Add, input: Input): Value | null {
  const { shape } = a;
  const way = c.pick(['plain', 'neg', 'flip', 'permute', 'plain'] as const);
  const plain = (): Value => input(dtype, shape, a.data);
  if (way === 'plain' || shape.length === 0 || count(shape) === 0) return plain();
  if (way === 'neg') {
    if (!isFloat(dtype)) return plain();
    const negative = input(
      dtype,
      shape,
      a.data.map((x) => -x),
    );
    return add('neg', { args: [new Ref(negative.id)], dtype, formula: (x) => map(x, (v) => -v) });
  }
  if (way === 'flip') {
    const axes = [c.nat(shape.length)];
    const turned = input(dtype, shape, flip(a, axes).data);
    const args = [new Ref(turned.id), axes];
    return add('flip', { args, dtype, formula: (x) => flip(x, axes) });
  }
  const axes = shape.map((_, i) => shape.length - 1 - i);
  const across = permute(a, axes);
  const there = input(dtype, across.shape, across.data);
  const args = [new Ref(there.id), axes];
  return add('permute', { args, dtype, formula: (x) => permute(x, axes) });
}

/** Adds operands and the call of a case. */
export function addSuiteCall(c: Choices, settings: SuiteSettings, add: Add, input: Input): Value | null {
  const { op, specs } = c.pick(c.pick(turns));
  if (specs.length === 0) return null;
  const spec = c.pick(specs);
  const instance: Instance = c.pick(spec.instances);
  const arrays = instance.draw(makeRandom(c.nat(1 << 16)));
  if (arrays.some((a) => count(a.shape) > most)) return null;
  const dtypes = dtypesOf(spec, arrays.length, settings);
  if (dtypes.length === 0) return null;
  const dtype = c.pick(dtypes);
  const options = instance.options ?? {};
  const values: Value[] = [];
  for (const [i, a] of arrays.entries()) {
    const value = operandOf(c, a, spec.inputDTypes?.[i] ?? dtype, add, input);
    if (value === null) return null;
    values.push(value);
  }
  const magnitudes = (xs: readonly NDArray[]): NDArray =>
    spec.oracle(
      xs.map((x) => map(x, Math.abs)),
      options,
    );
  return add(op, {
    args: values.map((v) => new Ref(v.id)),
    run: {
      text: `${spec.name} / ${instance.label}`,
      f: (tensors: readonly Tensor[]) => spec.run([...tensors], options),
    },
    dtype: resultOf(spec, dtype),
    formula: (...xs) => spec.oracle(xs, options),
    noise: 'all',
    ordered: values.every((v) => !isFloat(v.dtype)),
    ...(spec.terms === undefined ? {} : { terms: (...xs: NDArray[]) => magnitudes(xs) }),
  });
}
