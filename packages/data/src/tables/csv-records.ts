/**
 * Comma-separated values as lists of texts, by RFC 4180: fields in quotes may hold separators, line ends and doubled quotes.
 *
 * An automaton of its own over pieces of text, because no library has all that is asked for. That is exact line numbers in errors, strict quotes (a
 * damaged file must not become one long field), streams, and pages without Node's Buffer.
 */
import { DataError } from '../errors.ts';

/** One row of the file. */
export interface CsvRecord {
  readonly fields: readonly string[];
  /** Where it begins, counted from 1. */
  readonly line: number;
}

/** Letters of one field; a quote that is never closed must not take in a whole file. */
const longestField = 2 ** 24;

/** Where a reader is in a field. */
const START = 0;
const PLAIN = 1;
const QUOTED = 2;
/** Behind a quote inside quotes: the end of the field, or the first of two. */
const CLOSED = 3;

/** Reads pieces of text; gives each record that is complete. */
export class CsvReader {
  readonly #delimiter: string;
  readonly #source: string;
  #state = START;
  #field = '';
  #fields: string[] = [];
  #line = 1;
  /** Where the record, and where the open quote began. */
  #began = 1;
  #quoted = 1;
  #wasReturn = false;

  constructor(delimiter: string, source: string) {
    this.#delimiter = delimiter;
    this.#source = source;
  }

  #fail(line: number, text: string): DataError {
    return new DataError('format', this.#source, `[csv] ${this.#source}, line ${line}: ${text}`);
  }

  #endField(): void {
    this.#fields.push(this.#field);
    this.#field = '';
    this.#state = START;
  }

  /** The record that ends here; none for a line without anything. */
  #endRecord(): CsvRecord | undefined {
    const isEmpty = this.#state === START && this.#fields.length === 0;
    this.#endField();
    const record = { fields: this.#fields, line: this.#began };
    this.#fields = [];
    return isEmpty ? undefined : record;
  }

  #append(text: string): void {
    if (this.#field.length + text.length > longestField) {
      const what = this.#state === QUOTED ? `the quote of line ${this.#quoted} is not closed` : 'a field is too long';
      throw this.#fail(this.#line, `${what}: ${longestField} letters were read`);
    }
    this.#field += text;
  }

  /** The records that end in this piece. */
  *read(text: string): Generator<CsvRecord> {
    const delimiter = this.#delimiter;
    for (let at = 0; at < text.length; ) {
      if (this.#state === QUOTED) {
        const quote = text.indexOf('"', at);
        const end = quote < 0 ? text.length : quote;
        const part = text.slice(at, end);
        this.#append(part);
        for (let next = part.indexOf('\n'); next >= 0; next = part.indexOf('\n', next + 1)) this.#line++;
        if (quote >= 0) this.#state = CLOSED;
        at = end + 1;
        continue;
      }
      const letter = text[at]!;
      // Both letters of a line end may be in different pieces.
      if (this.#wasReturn) {
        this.#wasReturn = false;
        if (letter === '\n') {
          at++;
          continue;
        }
      }
      if (letter === delimiter) {
        this.#endField();
        at++;
      } else if (letter === '\n' || letter === '\r') {
        const record = this.#endRecord();
        this.#line++;
        this.#began = this.#line;
        this.#wasReturn = letter === '\r';
        at++;
        if (record !== undefined) yield record;
      } else if (letter === '"') {
        if (this.#state === PLAIN)
          throw this.#fail(
            this.#line,
            `a quote inside the field '${this.#field.slice(0, 40)}'; put the whole field in quotes, and double those inside`,
          );
        if (this.#state === CLOSED) this.#append('"');
        else this.#quoted = this.#line;
        this.#state = QUOTED;
        at++;
      } else {
        if (this.#state === CLOSED)
          throw this.#fail(
            this.#line,
            `'${letter}' behind the closing quote of '${this.#field.slice(0, 40)}'; a quote inside is written twice`,
          );
        let end = at + 1;
        while (end < text.length && !isSpecial(text.charCodeAt(end), delimiter)) end++;
        this.#state = PLAIN;
        this.#append(text.slice(at, end));
        at = end;
      }
    }
  }

  /** The last record, where the file does not end with a line end. */
  end(): CsvRecord | undefined {
    if (this.#state === QUOTED)
      throw new DataError(
        'truncated',
        this.#source,
        `[csv] ${this.#source}, line ${this.#quoted}: a quote is opened here and never closed; the file is cut off or damaged`,
      );
    return this.#endRecord();
  }
}

function isSpecial(code: number, delimiter: string): boolean {
  return code === 10 || code === 13 || code === 34 || code === delimiter.charCodeAt(0);
}
