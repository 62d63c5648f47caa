/** JSON lines: one JSON value a line (jsonlines.org). */
import { checkFits, checkOptions, DataError } from '../errors.ts';
import { Dataset } from '../pipeline/dataset.ts';
import { parsedJson, type TextChunks, TextReader, wholeText } from './chunks.ts';

/** Options of `parseJsonLines` and `jsonLines`. */
export interface JsonLinesOptions {
  /** What to call the file in errors (default 'JSON lines'). */
  readonly source?: string;
}

/** Letters of one line: a file without line ends must not fill the memory. */
const longestLine = 2 ** 26;

function parsedLine(text: string, line: number, source: string): unknown {
  const parsed = parsedJson(text);
  if ('value' in parsed) return parsed.value;
  throw new DataError(
    'format',
    source,
    `[jsonLines] ${source}, line ${line}: ${parsed.problem}; every line must be one JSON value`,
  );
}

/** Lines that are not empty, from pieces of text. */
class LineReader {
  readonly #source: string;
  #rest = '';
  #line = 1;

  constructor(source: string) {
    this.#source = source;
  }

  /** Values of the lines that end in this piece; with `last` also of what is left. */
  *read(text: string, last: boolean): Generator<unknown> {
    let start = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      yield* this.#value(this.#rest + text.slice(start, end));
      this.#rest = '';
      this.#line++;
      start = end + 1;
    }
    this.#rest += text.slice(start);
    if (this.#rest.length > longestLine)
      throw new DataError(
        'format',
        this.#source,
        `[jsonLines] ${this.#source}, line ${this.#line}: more than ${longestLine} letters without a line end; it is no file of JSON lines`,
      );
    if (last) yield* this.#value(this.#rest);
  }

  *#value(text: string): Generator<unknown> {
    if (text.trim() !== '') yield parsedLine(text, this.#line, this.#source);
  }
}

/**
 * The values of JSON lines that are in memory. Empty lines are passed over.
 *
 * @param content the whole file: text, or bytes of UTF-8
 * @throws DataError `format` with the line of what is no JSON
 * @example
 * parseJsonLines('{"x":1}\n{"x":2}\n'); // [{ x: 1 }, { x: 2 }]
 */
export function parseJsonLines(content: string | Uint8Array | ArrayBuffer, options: JsonLinesOptions = {}): unknown[] {
  checkOptions('parseJsonLines', options, { source: 'string' });
  const { source = 'JSON lines' } = options;
  return [...new LineReader(source).read(wholeText('parseJsonLines', content, source), true)];
}

/**
 * The values of JSON lines that come in pieces.
 *
 * @param open gives the pieces, text or bytes; called for every epoch
 * @throws DataError `argument`; while iterating `format` with the line
 * @example
 * await jsonLines(() => ['{"x":1}\n{"x"', ':2}']).toArray(); // [{ x: 1 }, { x: 2 }]
 */
export function jsonLines<T = unknown>(
  open: (epoch: number) => TextChunks,
  options: JsonLinesOptions = {},
): Dataset<T> {
  checkOptions('jsonLines', options, { source: 'string' });
  checkFits('jsonLines', 'open', open, typeof open === 'function', 'a function that gives pieces of text');
  const { source = 'JSON lines' } = options;
  const chunks = Dataset.from<string | Uint8Array>(open);
  return Dataset.from(async function* (epoch: number): AsyncGenerator<T> {
    const text = new TextReader('jsonLines', source);
    const lines = new LineReader(source);
    for await (const chunk of chunks.epoch(epoch)) yield* lines.read(text.read(chunk), false) as Generator<T>;
    yield* lines.read(text.read(undefined), true) as Generator<T>;
  });
}
