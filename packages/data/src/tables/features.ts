/**
 * Features: the columns of a table as numbers of a model, fitted on training data and used on any other: numbers normalised, texts one-hot.
 *
 * What was fitted is JSON, so it can be kept as the `config` of a checkpoint beside the weights it belongs to.
 */
import type { HostArray } from '../arrays.ts';
import { type MemoryDataset, memoryDataset } from '../columns.ts';
import { checkFits, checkOptions, DataError, isListOf, isList, isPlain, shown } from '../errors.ts';
import { DataFrame, type FrameColumn, type Row } from './frame.ts';
import { meanAndStd } from './normalizer.ts';

/** Options of `fitFeatures`. */
export interface FeatureOptions {
  /** Columns of the inputs, in order (default: all but the target). */
  readonly inputs?: readonly string[];
  /** The column to predict: a number, or the name of a class. */
  readonly target?: string;
  /** Numbers to mean 0 and deviation 1 over the training rows (default true). */
  readonly normalize?: boolean;
  /** What becomes of missing numbers: an error, or the mean of the training rows (default 'error'). Missing texts are a category. */
  readonly missing?: 'error' | 'mean';
  /** What becomes of texts the training rows do not have: an error, or zeros for all categories (default 'error'). */
  readonly unknown?: 'error' | 'zeros';
}

/** How one column becomes features. */
type Input =
  | {
      readonly name: string;
      readonly type: 'number';
      readonly mean: number;
      readonly std: number;
      readonly filler: number | null;
    }
  | { readonly name: string; readonly type: 'bool' }
  | { readonly name: string; readonly type: 'text'; readonly categories: readonly (string | null)[] };

/** What was fitted, as JSON holds it. */
interface Fitted {
  readonly inputs: readonly Input[];
  readonly target: { readonly name: string; readonly classes: readonly string[] | null } | null;
  readonly unknown: 'error' | 'zeros';
}

const op = 'features';

/** Texts by the numbers of their letters, null last: the same in every language of the system. */
const inOrder = (a: string | null, b: string | null): number =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1;

function fitInput(name: string, column: FrameColumn, options: FeatureOptions): Input {
  if (column.type === 'bool') return { name, type: 'bool' };
  if (column.type === 'text') return { name, type: 'text', categories: [...new Set(column.values)].sort(inOrder) };
  const there = column.values.filter((value) => !Number.isNaN(value));
  const { mean, std } = there.length === 0 ? { mean: 0, std: 1 } : meanAndStd(there);
  if (!Number.isFinite(mean) || !Number.isFinite(std))
    throw new DataError(
      'mismatch',
      name,
      `[${op}] column '${name}' holds infinite numbers; filter those rows, or take the column out`,
    );
  const scaled = options.normalize ?? true;
  return {
    name,
    type: 'number',
    mean: scaled ? mean : 0,
    std: scaled ? std : 1,
    filler: options.missing === 'mean' ? mean : null,
  };
}

const widthOf = (input: Input): number => (input.type === 'text' ? input.categories.length : 1);

/**
 * How the columns of a table become the inputs and targets of a model. Made by `fitFeatures`, or from the JSON of one.
 *
 * @example
 * const train = parseCsv('size,city,price\n1,Rome,10\n3,Oslo,30\n');
 * const features = fitFeatures(train, { target: 'price' });
 * features.names; // ['size', 'city=Oslo', 'city=Rome']
 * features.encode(train).gather(Uint32Array.of(0), 0, 1).x.data; // Float32Array [-1, 0, 1]
 * FeatureEncoder.fromJSON(JSON.parse(JSON.stringify(features))).width; // 3
 */
export class FeatureEncoder {
  readonly #fitted: Fitted;
  /** A name for every feature: of its column, and of the category where there are several. */
  readonly names: readonly string[];

  /** @param fitted what `toJSON` gave */
  private constructor(fitted: Fitted) {
    this.#fitted = fitted;
    this.names = fitted.inputs.flatMap((input) =>
      input.type === 'text' ? input.categories.map((category) => `${input.name}=${category ?? ''}`) : [input.name],
    );
  }

  /** Fits: see `fitFeatures`. */
  static fit(frame: DataFrame, options: FeatureOptions = {}): FeatureEncoder {
    checkFits(op, 'frame', frame, frame instanceof DataFrame, 'a DataFrame: parseCsv and DataFrame.fromRows give one');
    checkOptions(op, options, {
      inputs: 'any',
      target: 'string',
      normalize: 'boolean',
      missing: 'string',
      unknown: 'string',
    });
    const { target, missing = 'error', unknown = 'error' } = options;
    checkFits(op, 'missing', missing, missing === 'error' || missing === 'mean', "'error' or 'mean'");
    checkFits(op, 'unknown', unknown, unknown === 'error' || unknown === 'zeros', "'error' or 'zeros'");
    const names = options.inputs ?? frame.names.filter((name) => name !== target);
    checkFits(op, 'inputs', names, isList(names) && names.length > 0, 'a list of names of columns');
    if (target !== undefined && names.includes(target))
      throw new DataError(
        'argument',
        target,
        `[${op}] '${target}' is the target and among the inputs; take it out of one`,
      );
    const inputs = names.map((name) => fitInput(name, frame.column(name), options));
    if (target === undefined) return new FeatureEncoder({ inputs, target: null, unknown });
    const column = frame.column(target);
    const classes = column.type === 'number' ? null : classesOf(target, column);
    return new FeatureEncoder({ inputs, target: { name: target, classes }, unknown });
  }

  /** An encoder from what `toJSON` gave. @throws DataError `format` for anything else */
  static fromJSON(value: unknown): FeatureEncoder {
    const bad = new DataError(
      'format',
      'features',
      `[${op}] this is not what a FeatureEncoder gives as JSON; fit a new one`,
    );
    if (!isPlain(value)) throw bad;
    const { inputs, target, unknown } = value as Partial<Fitted>;
    const isText = (text: unknown): boolean => typeof text === 'string';
    const isInput = (input: Input): boolean =>
      isPlain(input) &&
      isText(input.name) &&
      (input.type === 'bool' ||
        (input.type === 'text' && isListOf(input.categories, (one) => one === null || isText(one))) ||
        (input.type === 'number' && [input.mean, input.std, input.filler ?? 0].every(Number.isFinite)));
    const isTarget =
      target === null ||
      (isPlain(target) && isText(target?.name) && (target?.classes === null || isListOf(target?.classes, isText)));
    if (
      !isListOf(inputs, (input) => isInput(input as Input)) ||
      !isTarget ||
      (unknown !== 'error' && unknown !== 'zeros')
    )
      throw bad;
    return new FeatureEncoder({ inputs, target: target!, unknown });
  }

  /** Features of a row. */
  get width(): number {
    return this.names.length;
  }

  /** Names of the classes of the target, in the order of their numbers; null where the target is a number, or there is none. */
  get classes(): readonly string[] | null {
    return this.#fitted.target?.classes ?? null;
  }

  toJSON(): Fitted {
    return this.#fitted;
  }

  /** The features of a table: float32 [rows, width]. @throws DataError `mismatch` for values that the training rows did not prepare for */
  inputs(frame: DataFrame): HostArray<'float32'> {
    checkFits(op, 'frame', frame, frame instanceof DataFrame, 'a DataFrame');
    const { width } = this;
    const data = new Float32Array(frame.rows * width);
    let feature = 0;
    for (const input of this.#fitted.inputs) {
      const column = frame.column(input.name);
      // A column without any value was read as numbers.
      const isMissing = input.type === 'text' && column.type === 'number' && column.values.every(Number.isNaN);
      if (column.type !== input.type && !isMissing)
        throw new DataError(
          'mismatch',
          input.name,
          `[${op}] column '${input.name}' holds ${column.type} here, and ${input.type} when the features were fitted; set types when reading`,
        );
      const places = input.type === 'text' ? new Map(input.categories.map((category, i) => [category, i])) : undefined;
      for (let row = 0; row < frame.rows; row++) {
        const at = row * width + feature;
        const value = isMissing ? null : column.values[row]!;
        if (places === undefined) data[at] = this.#number(input, value, row);
        else {
          const place = places.get(value as string | null);
          if (place !== undefined) data[at + place] = 1;
          else if (this.#fitted.unknown === 'error')
            throw new DataError(
              'mismatch',
              input.name,
              `[${op}] row ${row} has '${value}' as '${input.name}', which the training rows do not have; fit with unknown: 'zeros', or on more rows`,
            );
        }
      }
      feature += widthOf(input);
    }
    return { dtype: 'float32', shape: [frame.rows, width], data };
  }

  #number(input: Input, value: unknown, row: number): number {
    const missing = (remedy: string): DataError =>
      new DataError('mismatch', input.name, `[${op}] row ${row} has no '${input.name}'; ${remedy}`);
    if (input.type !== 'number') {
      if (value === null) throw missing('filter such rows');
      return Number(value);
    }
    const known = Number.isNaN(value) ? input.filler : (value as number);
    if (known === null) throw missing("filter such rows, or fit with missing: 'mean'");
    return (known - input.mean) / input.std;
  }

  /** The targets of a table: int32 [rows] numbers of classes, or float32 [rows, 1]. @throws DataError `argument` without a target */
  targets(frame: DataFrame): HostArray<'int32' | 'float32'> {
    const { target } = this.#fitted;
    checkFits(op, 'frame', frame, frame instanceof DataFrame, 'a DataFrame');
    if (target === null) throw new DataError('argument', 'target', `[${op}] there is no target; fit with { target }`);
    const { values, type } = frame.column(target.name);
    if (target.classes === null) {
      if (type !== 'number')
        throw new DataError(
          'mismatch',
          target.name,
          `[${op}] target '${target.name}' holds ${type} here, and numbers when it was fitted`,
        );
      const stray = (values as Float64Array).findIndex(Number.isNaN);
      if (stray >= 0)
        throw new DataError(
          'mismatch',
          target.name,
          `[${op}] row ${stray} has no '${target.name}', the target; filter such rows`,
        );
      return { dtype: 'float32', shape: [frame.rows, 1], data: Float32Array.from(values as Float64Array) };
    }
    const places = new Map(target.classes.map((name, i) => [name, i]));
    const data = Int32Array.from({ length: frame.rows }, (_, row) => {
      const place = places.get(String(values[row]));
      if (place === undefined)
        throw new DataError(
          'mismatch',
          target.name,
          `[${op}] row ${row} has the class '${String(values[row])}', and there are ${target.classes!.slice(0, 20).join(', ')}`,
        );
      return place;
    });
    return { dtype: 'int32', shape: [frame.rows], data };
  }

  /** A table as a data set of `x` and, where a target was fitted, `y`, for `batches` or `Dataset.from`. @throws DataError `mismatch` */
  encode(frame: DataFrame): MemoryDataset<'x' | 'y'> {
    const x = { array: this.inputs(frame) };
    return memoryDataset({ x, y: { array: this.targets(frame) } });
  }

  /** The features of one row: float32 [1, width], for a prediction. */
  encodeRow(row: Row): HostArray<'float32'> {
    const columns = this.#fitted.inputs.map(({ name, type }): [string, FrameColumn] => {
      const value = isPlain(row) && Object.hasOwn(row, name) ? row[name] : undefined;
      const kind = { number: 'number', text: 'string', bool: 'boolean' }[type];
      if (value !== null && typeof value !== kind)
        throw new DataError(
          'mismatch',
          name,
          `[${op}] the row has ${shown(value)} as '${name}'; it must be a ${kind}, or null`,
        );
      return [
        name,
        {
          type,
          values: type === 'number' ? Float64Array.of(value === null ? Number.NaN : (value as number)) : [value],
        } as FrameColumn,
      ];
    });
    return this.inputs(new DataFrame(new Map(columns), 1));
  }
}

/** The classes of a target in order. */
function classesOf(name: string, { values }: FrameColumn): string[] {
  const row = Array.from<unknown>(values).indexOf(null);
  if (row >= 0)
    throw new DataError('mismatch', name, `[${op}] row ${row} has no '${name}', the target; filter such rows`);
  return [...new Set(Array.from<unknown>(values).map(String))].sort(inOrder);
}

/**
 * How the columns of a table become inputs and targets of a model, from the rows of a training. It holds means and deviations of numbers, the
 * categories of texts (sorted, one feature each), the classes of the target.
 *
 * @param frame the training rows
 * @param options inputs (all but the target), target, normalize (true), missing ('error'), unknown ('error')
 * @throws DataError `argument`, and `mismatch` for columns that cannot be used
 * @example
 * const train = parseCsv('age,member,species\n1,true,cat\n3,false,dog\n');
 * const features = fitFeatures(train, { target: 'species' });
 * features.classes; // ['cat', 'dog']
 * features.encodeRow({ age: 2, member: true }).data; // Float32Array [0, 1]
 */
export function fitFeatures(frame: DataFrame, options: FeatureOptions = {}): FeatureEncoder {
  return FeatureEncoder.fit(frame, options);
}
