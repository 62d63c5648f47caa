/** Tables and lines of text in files. Node only. */
import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { DataError, reasonOf } from '../errors.ts';
import type { Dataset } from '../pipeline/dataset.ts';
import { type CsvOptions, csvRows, type CsvStreamOptions, parseCsv } from '../tables/csv.ts';
import type { DataFrame, Row } from '../tables/frame.ts';
import { jsonLines, parseJsonLines } from '../tables/json-lines.ts';
import { readWhole } from './files.ts';

/**
 * Reads a file of comma-separated values whole; names that end in `.gz` are unpacked.
 *
 * @throws DataError `missing`, `format`, `truncated`
 * @example
 * ```ts no-run: reads a file
 * const frame = await readCsv('houses.csv');
 * ```
 */
export async function readCsv(path: string, options: Omit<CsvOptions, 'source'> = {}): Promise<DataFrame> {
  return parseCsv(await readWhole(path), { ...options, source: path });
}

/**
 * Reads a file of JSON lines whole; names that end in `.gz` are unpacked.
 *
 * @throws DataError `missing`, `format`
 * @example
 * ```ts no-run: reads a file
 * const values = await readJsonLines('runs/mlp/epochs.jsonl');
 * ```
 */
export async function readJsonLines(path: string): Promise<unknown[]> {
  return parseJsonLines(await readWhole(path), { source: path });
}

/** A file in pieces, unpacked where its name ends in .gz. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
  const file = createReadStream(path);
  try {
    if (!path.endsWith('.gz')) yield* file as AsyncIterable<Uint8Array>;
    else {
      const unpacking = createGunzip();
      file.on('error', (error) => void unpacking.destroy(error));
      yield* file.pipe(unpacking) as AsyncIterable<Uint8Array>;
    }
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).syscall !== undefined;
    const text = `[data] cannot ${isMissing ? 'read' : 'unpack'} ${path}: ${reasonOf(error)}`;
    throw new DataError(isMissing ? 'missing' : 'format', path, text, { cause: error });
  } finally {
    file.destroy();
  }
}

/**
 * The rows of a file of comma-separated values one by one, for files larger than the memory.
 *
 * @throws DataError while iterating: `missing`, `format`, `truncated`
 * @example
 * ```ts no-run: reads a file
 * const rows = csvFile('trips.csv.gz').shuffle({ buffer: 10_000, seed: 1 });
 * ```
 */
export function csvFile(path: string, options: Omit<CsvStreamOptions, 'source'> = {}): Dataset<Row> {
  return csvRows(() => piecesOf(path), { ...options, source: path });
}

/**
 * The values of a file of JSON lines one by one.
 *
 * @throws DataError while iterating: `missing`, `format`
 * @example
 * ```ts no-run: reads a file
 * const texts = jsonLinesFile<{ text: string }>('corpus.jsonl').map(({ text }) => text);
 * ```
 */
export function jsonLinesFile<T = unknown>(path: string): Dataset<T> {
  return jsonLines<T>(() => piecesOf(path), { source: path });
}
