/** Comma-separated values as typed columns: names from the first line, types from the values. */
import { checkFits, checkOptions, DataError, isPlain, isList } from '../errors.ts';
import { Dataset } from '../pipeline/dataset.ts';
import { TextReader, type TextChunks, wholeText } from './chunks.ts';
import { type CsvRecord, CsvReader } from './csv-records.ts';
import { columnOf, type ColumnType, DataFrame, defaultMissing, type Row, typeOf, typedValue } from './frame.ts';

/** Options of `parseCsv`. */
export interface CsvOptions {
  /** What stands between fields (default ','). */
  readonly delimiter?: string;
  /** Whether the first line has names (default true), or the names. */
  readonly header?: boolean | readonly string[];
  /** Types of columns by name; others are inferred: numbers, true and false, or text. */
  readonly types?: Readonly<Record<string, ColumnType>>;
  /** Fields that say that a value is missing (default '', 'NA', 'N/A', '#N/A', 'NaN', 'nan', 'null', 'NULL', 'None'). */
  readonly missing?: readonly string[];
  /** What to call the file in errors (default 'CSV'). */
  readonly source?: string;
}

/** Options of `csvRows` and `csvFile`. */
export interface CsvStreamOptions extends CsvOptions {
  /** Rows from whose values types are inferred (default 1000). Later values of another type are an error. */
  readonly inferRows?: number;
}

interface Settings {
  readonly delimiter: string;
  readonly header: boolean | readonly string[];
  readonly types: Readonly<Record<string, ColumnType>>;
  readonly missing: ReadonlySet<string>;
  readonly source: string;
}

const optionTypes = { delimiter: 'string', header: 'any', types: 'object', missing: 'any', source: 'string' } as const;

const isTexts = (value: unknown): value is readonly string[] =>
  isList(value) && value.every((text) => typeof text === 'string');

function settingsOf(op: string, options: CsvOptions): Settings {
  const { delimiter = ',', header = true, types = {}, missing = defaultMissing, source = 'CSV' } = options;
  const isDelimiter = delimiter.length === 1 && !/["\r\n]/.test(delimiter);
  checkFits(op, 'delimiter', delimiter, isDelimiter, 'one letter, and no quote or line end');
  checkFits(op, 'header', header, typeof header === 'boolean' || isTexts(header), 'true, false or a list of names');
  checkFits(op, 'missing', missing, isTexts(missing), 'a list of texts');
  checkFits(op, 'types', types, isPlain(types), 'types by name');
  for (const [name, type] of Object.entries(types))
    checkFits(op, `type of '${name}'`, type, ['number', 'text', 'bool'].includes(type), "'number', 'text' or 'bool'");
  // Columns may have any name, those of the members of objects too.
  const ownTypes = Object.assign(Object.create(null) as Record<string, ColumnType>, types);
  return { delimiter, header, types: ownTypes, missing: new Set(missing), source };
}

/** The names of columns, and whether the first record is one of them. */
function namesOf(
  first: CsvRecord,
  { header, types, source }: Settings,
): { names: readonly string[]; hasHeader: boolean } {
  const names =
    header === true
      ? first.fields.map((name) => name.trim())
      : header === false
        ? first.fields.map((_, i) => `column${i}`)
        : header;
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new DataError(
      'format',
      source,
      `[csv] ${source}, line ${first.line}: two columns have the name '${twice}'; rename one, or give header: [...names]`,
    );
  const unknown = Object.keys(types).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new DataError(
      'argument',
      'types',
      `[csv] ${source} has no column '${unknown}'; its columns are ${names.slice(0, 20).join(', ')}`,
    );
  return { names, hasHeader: header === true };
}

function checkWidth({ fields, line }: CsvRecord, names: readonly string[], source: string): void {
  if (fields.length !== names.length)
    throw new DataError(
      'format',
      source,
      `[csv] ${source}, line ${line}: ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}, and there are ${names.length} columns; a field with the delimiter in it needs quotes`,
    );
}

/**
 * Reads comma-separated values (RFC 4180) that are in memory. A column of numbers has NaN where a value is missing. A column of true and false is one
 * of booleans, and any other is text.
 *
 * @param content the whole file: text, or bytes of UTF-8
 * @param options delimiter (','), header (true), types by column, missing, source
 * @throws DataError `format` and `truncated` with the line; `argument`
 * @example
 * const frame = parseCsv('city,size\nOslo,3\n"St. Paul, MN",\n');
 * frame.column('size').values; // Float64Array [3, NaN]
 * frame.column('city').values; // ['Oslo', 'St. Paul, MN']
 */
export function parseCsv(content: string | Uint8Array | ArrayBuffer, options: CsvOptions = {}): DataFrame {
  checkOptions('parseCsv', options, optionTypes);
  const settings = settingsOf('parseCsv', options);
  const reader = new CsvReader(settings.delimiter, settings.source);
  const records = [...reader.read(wholeText('parseCsv', content, settings.source))];
  const last = reader.end();
  if (last !== undefined) records.push(last);
  const first = records[0];
  if (first === undefined)
    throw new DataError(
      'format',
      settings.source,
      `[csv] ${settings.source} is empty; it needs a line with the names of columns at least`,
    );
  const { names, hasHeader } = namesOf(first, settings);
  const rows = hasHeader ? records.slice(1) : records;
  for (const record of rows) checkWidth(record, names, settings.source);
  const lineOf = (row: number): string => `line ${rows[row]!.line}`;
  const columns = names.map((name, i) => {
    const texts = rows.map(({ fields }) => fields[i]!);
    const type = settings.types[name] ?? typeOf(texts, settings.missing);
    return [
      name,
      columnOf(
        texts,
        type,
        settings.missing,
        (row) => `[csv] ${settings.source}, ${lineOf(row)}, column '${name}'`,
        settings.source,
      ),
    ] as const;
  });
  return new DataFrame(new Map(columns), rows.length);
}

async function* rowsFrom(chunks: TextChunks, settings: Settings, inferRows: number): AsyncGenerator<Row> {
  const { source, missing } = settings;
  const text = new TextReader('csvRows', source);
  const reader = new CsvReader(settings.delimiter, source);
  let names: readonly string[] | undefined;
  let types: ColumnType[] | undefined;
  let waiting: CsvRecord[] = [];
  const rowOf = ({ fields, line }: CsvRecord): Row => {
    const row: Row = {};
    names!.forEach((name, i) => {
      const value = typedValue(
        fields[i]!,
        types![i]!,
        missing,
        () => `[csv] ${source}, line ${line}, column '${name}'`,
        source,
      );
      Object.defineProperty(row, name, { value, enumerable: true, configurable: true, writable: true });
    });
    return row;
  };
  const infer = (): void => {
    types = names!.map(
      (name, i) =>
        settings.types[name] ??
        typeOf(
          waiting.map(({ fields }) => fields[i]!),
          missing,
        ),
    );
  };
  const ready = function* (records: Iterable<CsvRecord>): Generator<Row> {
    for (const record of records) {
      if (names === undefined) {
        const found = namesOf(record, settings);
        names = found.names;
        if (found.hasHeader) continue;
      }
      checkWidth(record, names, source);
      if (types !== undefined) yield rowOf(record);
      else if (waiting.push(record) >= inferRows) {
        infer();
        yield* waiting.map(rowOf);
        waiting = [];
      }
    }
  };
  for await (const chunk of chunks as AsyncIterable<string | Uint8Array>) yield* ready(reader.read(text.read(chunk)));
  yield* ready(reader.read(text.read(undefined)));
  const last = reader.end();
  if (last !== undefined) yield* ready([last]);
  if (names === undefined)
    throw new DataError(
      'format',
      source,
      `[csv] ${source} is empty; it needs a line with the names of columns at least`,
    );
  infer();
  yield* waiting.map(rowOf);
}

/**
 * The rows of comma-separated values that come in pieces, as objects: files larger than the memory, answers of servers.
 *
 * @param open gives the pieces, text or bytes; called for every epoch
 * @param options those of `parseCsv`, and inferRows (1000)
 * @throws DataError `argument`; while iterating `format` and `truncated` with the line
 * @example
 * const rows = csvRows(() => ['x,y\n1,', '2\n3,4\n']);
 * await rows.toArray(); // [{ x: 1, y: 2 }, { x: 3, y: 4 }]
 */
export function csvRows(open: (epoch: number) => TextChunks, options: CsvStreamOptions = {}): Dataset<Row> {
  checkOptions('csvRows', options, { ...optionTypes, inferRows: 'number' });
  checkFits('csvRows', 'open', open, typeof open === 'function', 'a function that gives pieces of text');
  const settings = settingsOf('csvRows', options);
  const { inferRows = 1000 } = options;
  checkFits(
    'csvRows',
    'inferRows',
    inferRows,
    Number.isSafeInteger(inferRows) && inferRows > 0,
    'a whole number above 0',
  );
  const chunks = Dataset.from<string | Uint8Array>(open);
  return Dataset.from((epoch) => rowsFrom(chunks.epoch(epoch), settings, inferRows));
}
