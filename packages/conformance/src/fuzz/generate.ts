/** A random program from lists of numbers: the first says how it runs and what it starts from, every other one adds a call. */
import type { DType } from '@polygrad/core';
import type { EngineCaps } from '@polygrad/core/engine';
import { build, count, flip, type NDArray, ravel } from '../oracle/ndarray.ts';
import { Choices } from '../programs/choices.ts';
import { holdAll } from '../programs/evaluate.ts';
import { families, type FamilyName } from '../operations/registry.ts';
import { isFloat, type Made, Pool } from '../programs/pool.ts';
import { type Program, Ref, type Step, uses as usesOf, type Value } from '../programs/program.ts';
import { type NamedCall, sizedCalls } from './sized-calls.ts';
import { addSuiteCall, type SuiteSettings } from './suite-calls.ts';

/** Families by turns, so that one with many members is not met more often; what is everywhere in programs more often. */
const turns: readonly FamilyName[] = [
  'elementwise',
  'movement',
  'reductions',
  'products',
  'elementwise',
  'indexing',
  'movement',
  'lines',
  'images',
  'losses',
  'elementwise',
  'convolutions',
  'movement',
  'normalization',
  'attention',
  'creation',
];

/** Random calls of a family, of those with derivatives or of all. */
const callsOf = (family: FamilyName, smooth: boolean): NamedCall[] =>
  families[family].flatMap(({ name, calls }) =>
    calls.filter((call) => !smooth || call.smooth).map((call) => ({ name, ...call })),
  );

/** Products of two matrices, by the names of their rows. */
const matrixCalls: readonly NamedCall[] = callsOf('products', false).filter(({ name }) =>
  ['gemm', 'matmul', 'inner'].includes(name),
);

export interface Settings {
  /** Dtypes of inputs. */
  readonly dtypes: readonly DType[];
  /** Only operations with derivatives, inputs without special values, no pauses. */
  readonly smooth?: boolean;
  /** Dtypes that the engine multiplies in tiles of matrices: most inputs have them then, half of them shapes of which tiles are cut. */
  readonly factors?: readonly DType[];
  /** One extent of the program, and the greatest it will be with the same choices. */
  readonly size?: SizeSettings;
}

export interface SizeSettings {
  readonly n: number;
  readonly most: number;
  /** A second one, which changes on its own. */
  readonly also?: SizeSettings;
}

export const everyDType: readonly DType[] = [
  'float32',
  'float32',
  'float64',
  'int32',
  'float16',
  'bfloat16',
  'bool',
  'int64',
  'uint8',
  'int8',
  'int16',
  'uint16',
  'uint32',
  'uint64',
];

/** What is drawn for an engine: of the dtypes that it holds; derivatives in float64, which no tile of matrices multiplies. */
export function settingsFor({ dtypes, matrix }: Pick<EngineCaps, 'dtypes' | 'matrix'>, smooth: boolean): Settings {
  if (smooth) return { dtypes: ['float64', 'float64', 'bool'], smooth };
  const factors = (matrix ?? []).map(({ dtype }) => dtype);
  return { dtypes: everyDType.filter((d) => dtypes.has(d)), smooth, ...(factors.length > 0 ? { factors } : {}) };
}

const extents = [2, 3, 1, 4, 5, 7, 8, 13, 16, 17];
const special = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0, 1e-3, 60];

/** Shapes of factors that tiles of matrices are cut from, and those next to them: as long as a tile, a little longer, in units of 16 bytes or not. */
const factorShapes = [[16, 16], [17, 33], [64, 16], [33, 24], [16, 65], [40, 32], [2, 17, 16], [3, 16, 24]]; // biome-ignore format: shapes

function shapeOf(c: Choices, factors: boolean): number[] {
  if (factors && c.nat(2) === 0) return [...c.pick(factorShapes)];
  if (c.seldom(14))
    return [
      ...c.pick([
        [9000],
        [33, 130],
        [2, 4099],
        [130, 67],
        [16385],
        [257, 8, 5],
        [64],
        [128],
        [257],
        [65, 15],
        [3, 129],
        [4, 5, 63],
      ]),
    ];
  const rank = c.pick([2, 1, 3, 2, 4, 3, 0, 5, 4, 6, 8, 7]);
  const shape = Array.from({ length: rank }, () => (rank > 5 ? c.pick([1, 2, 1, 3]) : c.pick(extents)));
  while (count(shape) > 1500) shape[shape.indexOf(Math.max(...shape))] = 2;
  if (rank > 0 && c.seldom(16)) shape[c.nat(rank)] = 0;
  return shape;
}

/** Elements that are not all alike and not all positive; floats with a fraction, now and then special values. */
function dataOf(c: Choices, dtype: DType, size: number, smooth: boolean): number[] {
  const [seed, style] = [c.nat(1 << 16), c.nat(8)];
  let state = (seed + 1) * 0x9e3779b1;
  const next = (): number => {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    state ^= state >>> 16;
    return (state >>> 0) / 2 ** 32;
  };
  return Array.from({ length: size }, () => {
    if (dtype === 'bool') return next() < 0.5 ? 0 : 1;
    if (smooth) return style < 4 ? next() * 4 - 2 : next() + 0.25;
    if (isFloat(dtype)) {
      if (style === 7 && next() < 0.2) return special[Math.floor(next() * special.length)]!;
      if (style === 6) return Math.floor(next() * 7) - 3;
      return style < 3 ? next() * 4 - 2 : style < 5 ? next() + 0.25 : (next() - 0.5) * 40;
    }
    if (style === 7) return Math.floor(next() * 200) - (dtype.startsWith('u') ? 0 : 100);
    return Math.floor(next() * 9) - (dtype.startsWith('u') ? 0 : 4);
  });
}

/** A shape with the size in it: in front more often than elsewhere. */
function sizedShapeOf(c: Choices, { n, most, also }: SizeSettings): number[] {
  const rank = c.pick([2, 1, 3, 2, 4, 3]);
  const axes = c.pick([[0], [0], [0], [0], [c.nat(rank)], [0, c.nat(rank)]]);
  const shape = Array.from({ length: rank }, () => c.pick(extents));
  const second = also === undefined || c.nat(4) === 0 ? -1 : (axes[0]! + 1 + c.nat(Math.max(1, rank - 1))) % rank;
  const lengths = (one: number, other: number | undefined): number[] =>
    shape.map((m, i) => (i === second && i !== axes[0] ? other! : axes.includes(i) ? one : m));
  const atMost = (): number => lengths(most, also?.most).reduce((p, m) => p * m, 1);
  for (let i = rank - 1; i >= 0 && atMost() > 800; i--) if (!axes.includes(i)) shape[i] = 2;
  if (atMost() > 1500) axes.length = 1;
  return lengths(n, also?.n);
}

class Builder {
  readonly steps: Step[] = [];
  readonly values: Value[] = [];
  readonly used = new Set<number>();
  readonly extra = new Set<number>();
  #ids = 0;

  readonly input = (dtype: DType, shape: readonly number[], data: readonly number[]): Value => {
    const held = holdAll(dtype, { shape, data }) as NDArray;
    const id = this.#ids++;
    this.steps.push({ kind: 'input', id, dtype, shape, data: held.data });
    const value = { ...held, id, dtype };
    this.values.push(value);
    return value;
  };

  /** Adds a call of an operation, if it finds operands and its result is of use. */
  call(operation: NamedCall, c: Choices): Value | null {
    return this.#attempt(() => {
      const made = operation.make(new Pool(c, this.values, this.input));
      return made === null ? null : this.#add(operation.name, made);
    });
  }

  /** Adds what a case of the suite calls, at operands of its own. */
  suiteCall(c: Choices, settings: SuiteSettings): Value | null {
    return this.#attempt(() => addSuiteCall(c, settings, (name, made) => this.#add(name, made), this.input));
  }

  #attempt(add: () => Value | null): Value | null {
    const [steps, values, ids] = [this.steps.length, this.values.length, this.#ids];
    const value = add();
    if (value === null) {
      // Inputs made for it go too.
      this.steps.length = steps;
      this.values.length = values;
      for (let id = ids; id < this.#ids; id++) this.used.delete(id);
      this.#ids = ids;
    }
    return value;
  }

  #add(name: string, made: Made): Value | null {
    const { args, dtype, formula, part, run, noise = 'none', terms, ordered = true } = made;
    const step: Step = {
      kind: 'call',
      id: this.#ids,
      op: name,
      args,
      dtype,
      formula,
      noise,
      ...(terms === undefined ? {} : { terms }),
      ordered,
      ...(part === undefined ? {} : { part }),
      ...(run === undefined ? {} : { run }),
    };
    const inputs = refsIn(step).map((id) => this.values.find((v) => v.id === id) as Value);
    const result = formula(...inputs);
    if (result.shape.length > 8 || result.data.length > 20_000) return null;
    const large = result.data.filter((x) => Math.abs(x) > 1e9 || Number.isNaN(x)).length;
    if (large > 0 && large * 2 > result.data.length) return null;
    const held = holdAll(dtype, result);
    if (held === null) return null;
    for (const v of inputs) this.used.add(v.id);
    this.#ids++;
    this.steps.push(step);
    const value = { ...held, id: step.id, dtype };
    this.values.push(value);
    return value;
  }

  /** An input that is part of a larger one in memory, or runs through it backwards. */
  view(c: Choices, dtype: DType, shape: readonly number[], data: (size: number) => readonly number[]): void {
    const around = shape.map((_, axis) => (axis === 0 ? 0 : c.pick([0, 2])));
    const turned = c.pick([[0], [], [shape.length - 1]]);
    const whole = shape.map((n, i) => n + around[i]!);
    const base = this.input(dtype, whole, data(count(whole)));
    const starts = around.map((n) => Math.min(n, 1));
    const ends = shape.map((n, i) => n + starts[i]!);
    const part = this.#add('slice', {
      args: [new Ref(base.id), starts.map((start, i) => ({ start, stop: ends[i]! }))],
      dtype,
      formula: (a) =>
        build(
          shape,
          (at) =>
            a.data[
              ravel(
                at.map((k, i) => k + starts[i]!),
                whole,
              )
            ] as number,
        ),
    });
    if (part !== null && turned.length > 0)
      this.#add('flip', { args: [new Ref(part.id), turned], dtype, formula: (a) => flip(a, turned) });
  }

  assign(c: Choices): void {
    const value = this.values[this.values.length - 1 - c.nat(this.values.length)]!;
    const targets = this.values.filter(
      (v) => v.id !== value.id && v.dtype === value.dtype && v.shape.join() === value.shape.join(),
    );
    const target = targets[c.nat(targets.length)];
    if (target === undefined) return;
    const id = this.#ids++;
    this.steps.push({ kind: 'assign', id, target: target.id, value: value.id });
    this.values.splice(this.values.indexOf(target), 1);
    this.extra.delete(target.id);
    this.used.add(value.id);
    this.values.push({ ...value, id });
  }
}

const refsIn = (step: Step): number[] => usesOf(step);

/** The program that the numbers mean. */
export function generate(
  rows: readonly (readonly number[])[],
  { dtypes, smooth = false, factors, size }: Settings,
): Program {
  const head = new Choices(rows[0] ?? []);
  const scoped = head.nat(2) === 1;
  const builder = new Builder();
  const main = head.pick(factors !== undefined && head.nat(4) < 3 ? factors : dtypes);
  for (let i = head.nat(3); i >= 0; i--) {
    const shape =
      size !== undefined && head.nat(4) < 3 ? sizedShapeOf(head, size) : shapeOf(head, factors !== undefined);
    const dtype = head.nat(3) < 2 ? main : head.pick(dtypes);
    if (size !== undefined && shape.length > 0 && head.seldom(5)) {
      const [seed, style] = [head.nat(1 << 16), head.nat(8)];
      builder.view(head, dtype, shape, (elements) => dataOf(new Choices([seed, style]), dtype, elements, smooth));
      builder.steps.push({ kind: 'flush' });
    } else builder.input(dtype, shape, dataOf(head, dtype, count(shape), smooth));
  }
  for (const row of rows.slice(1)) {
    const c = new Choices(row);
    // Nothing, so that a list shrinks to what matters.
    const what = c.nat(42) - 1;
    if (what < 0) continue;
    if (what >= 36) {
      const value = builder.suiteCall(c, { dtypes, smooth });
      if (value !== null && c.seldom(5)) builder.extra.add(value.id);
      continue;
    }
    if (what >= 32 && !smooth) {
      if (what === 32) builder.assign(c);
      else builder.steps.push(pause(c, builder.values, scoped));
      continue;
    }
    const isSized = size !== undefined && c.nat(2) === 0;
    const family = isSized
      ? sizedCalls(size.also !== undefined && c.nat(2) === 0 ? size.also.n : size.n).filter(
          (call) => !smooth || call.smooth,
        )
      : factors !== undefined && c.nat(3) === 0
        ? matrixCalls
        : callsOf(turns[what % turns.length]!, smooth);
    if (family.length === 0) continue;
    const value = builder.call(c.pick(family), c);
    if (value !== null && c.seldom(5)) builder.extra.add(value.id);
  }
  const ends = builder.values.filter((v) => !builder.used.has(v.id) || builder.extra.has(v.id)).map((v) => v.id);
  const limit = smooth ? undefined : head.pick([undefined, undefined, 1, 4, undefined, 9]);
  return { steps: builder.steps, outputs: ends, scoped, ...(limit === undefined ? {} : { limit }) };
}

function pause(c: Choices, values: readonly Value[], scoped: boolean): Step {
  const kind = c.pick(scoped ? (['flush', 'peek'] as const) : (['flush', 'peek', 'read', 'idle'] as const));
  if (kind === 'flush' || kind === 'idle') return { kind };
  return { kind, of: values[values.length - 1 - c.nat(values.length)]!.id };
}
