/** Tables of typed columns in memory: what CSV and JSON lines become before they are numbers of a model. */
import { checkInteger, checkOptions, DataError, isPlain, shown, isList } from '../errors.ts';
import { Dataset, type SplitOptions } from '../pipeline/dataset.ts';
import { foldsOf, partsOf } from '../pipeline/parts.ts';

/** What a column holds. */
export type ColumnType = 'number' | 'text' | 'bool';

/** Values of one column; NaN and null mark missing ones. */
export type FrameColumn =
  | { readonly type: 'number'; readonly values: Float64Array }
  | { readonly type: 'text'; readonly values: readonly (string | null)[] }
  | { readonly type: 'bool'; readonly values: readonly (boolean | null)[] };

/** One row by the names of columns. */
export type Row = Record<string, number | string | boolean | null>;

/** Fields that say that a value is missing: the usual ones of pandas. */
export const defaultMissing: readonly string[] = ['', 'NA', 'N/A', '#N/A', 'NaN', 'nan', 'null', 'NULL', 'None'];

const numeral = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$|^[+-]?(?:inf|infinity)$/i;

/** The number that a text is; undefined for what is none. */
function numberOf(text: string): number | undefined {
  const plain = text.trim();
  if (!numeral.test(plain)) return undefined;
  const value = Number(plain);
  return Number.isNaN(value) ? (plain.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY) : value;
}

function boolOf(text: string): boolean | undefined {
  const plain = text.trim().toLowerCase();
  return plain === 'true' ? true : plain === 'false' ? false : undefined;
}

/** The type that fits all texts that are there. A column without any is one of numbers, as in pandas. */
export function typeOf(texts: readonly string[], missing: ReadonlySet<string>): ColumnType {
  const there = texts.filter((text) => !missing.has(text));
  if (there.every((text) => numberOf(text) !== undefined)) return 'number';
  return there.every((text) => boolOf(text) !== undefined) ? 'bool' : 'text';
}

/** A text as a value of a type. @throws DataError `format` if it is none; `place` begins the message */
export function typedValue(
  text: string,
  type: ColumnType,
  missing: ReadonlySet<string>,
  place: () => string,
  source: string,
): number | string | boolean | null {
  if (missing.has(text)) return type === 'number' ? Number.NaN : null;
  if (type === 'text') return text;
  const value = type === 'number' ? numberOf(text) : boolOf(text);
  if (value === undefined) {
    const wanted = type === 'number' ? 'number' : 'true or false';
    throw new DataError(
      'format',
      source,
      `${place()}: '${text.slice(0, 40)}' is no ${wanted}; correct it, or set types to 'text'`,
    );
  }
  return value;
}

/** A column of a type from its texts. */
export function columnOf(
  texts: readonly string[],
  type: ColumnType,
  missing: ReadonlySet<string>,
  place: (row: number) => string,
  source: string,
): FrameColumn {
  const values = texts.map((text, row) => typedValue(text, type, missing, () => place(row), source));
  return { type, values: type === 'number' ? Float64Array.from(values as number[]) : values } as FrameColumn;
}

/**
 * Named columns of numbers, texts and booleans, all with as many rows.
 *
 * @example
 * const frame = DataFrame.fromRows([{ x: 1, city: 'Oslo' }, { x: 2, city: 'Rome' }]);
 * frame.rows; // 2
 * frame.row(1); // { x: 2, city: 'Rome' }
 */
export class DataFrame {
  readonly rows: number;
  readonly #columns: ReadonlyMap<string, FrameColumn>;

  /** @param columns all with `rows` values */
  constructor(columns: ReadonlyMap<string, FrameColumn>, rows: number) {
    checkInteger('DataFrame', 'rows', rows, 0);
    for (const [name, { values }] of columns)
      if (values.length !== rows)
        throw new DataError(
          'mismatch',
          name,
          `[DataFrame] column '${name}' has ${values.length} values for ${rows} rows`,
        );
    this.rows = rows;
    this.#columns = columns;
  }

  /**
   * A table from rows that are objects, such as JSON lines. The first row's names are the columns; null is a missing value.
   *
   * @throws DataError `mismatch` for rows with other names, and columns of several types
   * @example
   * DataFrame.fromRows([{ ok: true }, { ok: null }]).column('ok').values; // [true, null]
   */
  static fromRows(rows: readonly object[]): DataFrame {
    const bad = (row: number, text: string): DataError =>
      new DataError('mismatch', `row ${row}`, `[DataFrame] row ${row} ${text}`);
    if (!isList(rows))
      throw new DataError('argument', 'rows', `[DataFrame] rows are ${shown(rows)}; give a list of objects`);
    for (const [i, row] of (rows as readonly unknown[]).entries())
      if (!isPlain(row)) throw bad(i, `is ${shown(row)}; rows are objects`);
    const names = Object.keys(rows[0] ?? {});
    const columns = new Map<string, FrameColumn>();
    for (const name of names) {
      const values = rows.map((row, i) => {
        if (!Object.hasOwn(row, name)) throw bad(i, `has no '${name}'; write null for what is missing`);
        return (row as Record<string, unknown>)[name];
      });
      const there = values.findIndex((value) => value !== null);
      const kind = there < 0 ? 'number' : typeof values[there];
      const type = { number: 'number', string: 'text', boolean: 'bool' }[kind as string] as ColumnType | undefined;
      if (type === undefined)
        throw bad(there, `has ${shown(values[there])} as '${name}'; columns hold numbers, texts and booleans`);
      values.forEach((value, i) => {
        if (value !== null && typeof value !== kind)
          throw bad(i, `has ${shown(value)} as '${name}', row ${there} a ${kind}`);
      });
      const filled =
        type === 'number'
          ? Float64Array.from(values, (value) => (value === null ? Number.NaN : (value as number)))
          : values;
      columns.set(name, { type, values: filled } as FrameColumn);
    }
    const stray = rows.findIndex((row) => Object.keys(row).length !== names.length);
    if (stray >= 0)
      throw bad(stray, `has ${Object.keys(rows[stray]!).length} names, row 0 ${names.length}; all rows need the same`);
    return new DataFrame(columns, rows.length);
  }

  /** Names of the columns, in order. */
  get names(): readonly string[] {
    return [...this.#columns.keys()];
  }

  /** The column of a name. @throws DataError `argument` where there is none */
  column(name: string): FrameColumn {
    const column = this.#columns.get(name);
    if (column === undefined)
      throw new DataError(
        'argument',
        'name',
        `[DataFrame] there is no column ${shown(name)}; the columns are ${this.names.slice(0, 20).join(', ')}`,
      );
    return column;
  }

  /** The first and the last rows in columns, below their names, and how many there are. */
  toString(): string {
    const most = 10;
    const shownRows = Array.from({ length: this.rows }, (_, i) => i).filter(
      (i) => this.rows <= most || i < most / 2 || i >= this.rows - most / 2,
    );
    const cell = (value: Row[string]): string => {
      const text =
        value === null ? 'null' : typeof value === 'number' ? String(Number(value.toPrecision(6))) : String(value);
      return text.length > 24 ? `${text.slice(0, 21)}...` : text;
    };
    const columns = [...this.#columns].map(([name, { type, values }]) => {
      const texts = [cell(name), ...shownRows.map((row) => cell(values[row]!))];
      const width = Math.max(...texts.map((text) => text.length));
      return texts.map((text) => (type === 'number' ? text.padStart(width) : text.padEnd(width)));
    });
    const lines = [0, ...shownRows.map((_, i) => i + 1)].map((at) =>
      columns
        .map((texts) => texts[at])
        .join('  ')
        .trimEnd(),
    );
    if (this.rows > most) lines.splice(1 + most / 2, 0, '...');
    return [...lines, `${this.rows} rows, ${this.#columns.size} columns`].join('\n');
  }

  /** One row as an object. @throws DataError `argument` for numbers that are no row's */
  row(index: number): Row {
    checkInteger('DataFrame', 'row', index, 0, this.rows - 1);
    return Object.fromEntries([...this.#columns].map(([name, { values }]) => [name, values[index]!]));
  }

  /** These rows, in this order. @throws DataError `argument` for numbers that are no row's */
  take(rows: ArrayLike<number>): DataFrame {
    const isRows = isList(rows) || (ArrayBuffer.isView(rows) && !(rows instanceof DataView));
    if (!isRows)
      throw new DataError('argument', 'rows', `[DataFrame] rows are ${shown(rows)}; give a list of their numbers`);
    const chosen = Array.from(rows as ArrayLike<number>);
    for (const row of chosen) checkInteger('DataFrame', 'row', row, 0, this.rows - 1);
    const columns = [...this.#columns].map(([name, { type, values }]) => {
      const picked = chosen.map((row) => values[row]!);
      return [
        name,
        { type, values: type === 'number' ? Float64Array.from(picked as number[]) : picked } as FrameColumn,
      ] as const;
    });
    return new DataFrame(new Map(columns), chosen.length);
  }

  /**
   * Parts of the table, as `Dataset.split` makes them. Fit features and normalisation on the first, and use them on all.
   *
   * @param options seed; stratify: the name of a column of classes, or the class of each row
   * @throws DataError `argument`
   * @example
   * const [train, test] = DataFrame.fromRows([{ x: 1 }, { x: 2 }, { x: 3 }, { x: 4 }]).split([0.75, 0.25], { seed: 1 });
   * [train!.rows, test!.rows]; // [3, 1]
   */
  split(shares: readonly number[], options: SplitOptions = {}): DataFrame[] {
    return partsOf('split', this.rows, shares, this.#dealt('split', options)).map((rows) => this.take(rows));
  }

  /**
   * The ways to take one of `count` parts for validation and the others for training, as `Dataset.folds`. Fit features on each `train` anew.
   *
   * @param options seed; stratify: the name of a column of classes, or the class of each row
   * @throws DataError `argument`
   * @example
   * const frame = DataFrame.fromRows([{ x: 1 }, { x: 2 }, { x: 3 }, { x: 4 }]);
   * frame.folds(2).map(({ validation }) => [...validation.column('x').values]); // [[1, 2], [3, 4]]
   */
  folds(count: number, options: SplitOptions = {}): { readonly train: DataFrame; readonly validation: DataFrame }[] {
    return foldsOf('folds', this.rows, count, this.#dealt('folds', options)).map(({ train, validation }) => ({
      train: this.take(train),
      validation: this.take(validation),
    }));
  }

  /** How rows are assigned to folds: by the value of a column, given by name. */
  #dealt(op: string, options: SplitOptions): SplitOptions {
    checkOptions(op, options, { seed: 'number', stratify: 'any' });
    const { stratify } = options;
    return typeof stratify === 'string'
      ? { ...options, stratify: Array.from(this.column(stratify).values, String) }
      : options;
  }

  /** The rows as a data set of objects. */
  dataset(): Dataset<Row> {
    const numbers = Array.from({ length: this.rows }, (_, row) => row);
    return Dataset.from(numbers).map((row) => this.row(row));
  }

  /** What JSON and consoles show. */
  toJSON(): object {
    return { rows: this.rows, columns: Object.fromEntries([...this.#columns].map(([name, { type }]) => [name, type])) };
  }
}

// As Node's console shows it.
Object.defineProperty(DataFrame.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value: DataFrame.prototype.toString,
});
