/** Text that comes in pieces: bytes of UTF-8 or text, cut anywhere. */
import { DataError, reasonOf, shown } from '../errors.ts';

/** Text or UTF-8 bytes in pieces. */
export type TextChunks =
  | Iterable<string | Uint8Array>
  | AsyncIterable<string | Uint8Array>
  | ReadableStream<Uint8Array>;

const newline = 10;

/** The line of the first byte that is no UTF-8, counted in bytes from `line` on. */
function lineOfDamage(bytes: Uint8Array, line: number): number {
  let valid = 0;
  let end = bytes.length;
  const decodes = (upTo: number): boolean => {
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, upTo), { stream: true });
      return true;
    } catch {
      return false;
    }
  };
  while (end - valid > 1) {
    const middle = (valid + end) >>> 1;
    if (decodes(middle)) valid = middle;
    else end = middle;
  }
  for (let at = 0; at < valid; at++) if (bytes[at] === newline) line++;
  return line;
}

/** Turns pieces into text, whatever characters they cut through. A byte order mark at the beginning goes. */
export class TextReader {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  readonly #op: string;
  readonly #source: string;
  #line = 1;

  constructor(op: string, source: string) {
    this.#op = op;
    this.#source = source;
  }

  /** The text of a piece; `undefined` says that no more comes. @throws DataError `format` with the line of what is no UTF-8 */
  read(chunk: string | Uint8Array | undefined): string {
    let text: string;
    if (typeof chunk === 'string') text = this.#line === 1 ? chunk.replace(/^\ufeff/, '') : chunk;
    else if (chunk === undefined || ArrayBuffer.isView(chunk)) {
      try {
        text = this.#decoder.decode(chunk, { stream: chunk !== undefined });
      } catch (error) {
        const line = chunk === undefined ? this.#line : lineOfDamage(chunk, this.#line);
        throw new DataError(
          'format',
          this.#source,
          `[${this.#op}] ${this.#source}, line ${line}: the bytes are no UTF-8; save the file as UTF-8, or get it again`,
          { cause: error },
        );
      }
    } else
      throw new DataError(
        'argument',
        this.#source,
        `[${this.#op}] ${this.#source} gave ${shown(chunk)}; it must give text or bytes`,
      );
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.#line++;
    return text;
  }
}

/** The text of something that is whole: text, or bytes of UTF-8. @throws DataError */
export function wholeText(op: string, content: string | Uint8Array | ArrayBuffer, source: string): string {
  const reader = new TextReader(op, source);
  if (content instanceof ArrayBuffer) return wholeText(op, new Uint8Array(content), source);
  const bytes: unknown = content;
  if (bytes === undefined)
    throw new DataError('argument', source, `[${op}] ${source} is undefined; give text or bytes`);
  const text = reader.read(content);
  return text + (typeof content === 'string' ? '' : reader.read(undefined));
}

/** A JSON text as a value, or what is wrong with it. */
export function parsedJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: reasonOf(error) };
  }
}
