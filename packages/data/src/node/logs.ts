/** Logs of a training in files that other programs read: one line for each epoch. Node only. */
import { appendFile, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DataError } from '../errors.ts';
import { makeFolder, unwritten } from './write.ts';

/** What a log takes from the report of an epoch. */
interface Report {
  readonly epoch: number;
  readonly loss: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly validation: { readonly loss: number; readonly metrics: Readonly<Record<string, number>> } | null;
  readonly seconds: number;
  readonly steps: number;
}

/** A callback of `fit` of `@polygrad/nn`. */
export interface EpochLog {
  onEpochEnd(report: Report): Promise<void>;
}

/** The numbers of a report under one name each. */
function row({ epoch, loss, metrics, validation, seconds, steps }: Report): Record<string, number> {
  const checked = validation === null ? {} : { loss: validation.loss, ...validation.metrics };
  const named = Object.entries(checked).map(([name, value]) => [`validation_${name}`, value] as const);
  return { epoch, loss, ...metrics, ...Object.fromEntries(named), seconds, steps };
}

async function append(path: string, text: string): Promise<void> {
  try {
    await makeFolder(dirname(path));
    await appendFile(path, text);
  } catch (error) {
    throw unwritten(path, error);
  }
}

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/**
 * A table of comma-separated values (RFC 4180): a line with the names, and one for each epoch. A training that goes on adds to the file.
 *
 * @throws DataError `mismatch` if the file has other columns, `missing` if it cannot be written: the training ends with it
 * @example
 * ```ts no-run: writes a file
 * const callbacks = [csvLog('runs/mlp/epochs.csv')]; // an option of fit
 * ```
 */
export function csvLog(path: string): EpochLog {
  let begun = false;
  return {
    async onEpochEnd(report) {
      const numbers = row(report);
      const names = Object.keys(numbers).map(quoted).join(',');
      const line = `${Object.values(numbers).map(String).join(',')}\n`;
      if (begun) return append(path, line);
      const there = await readFile(path, 'utf8').catch(() => '');
      const first = /^.*/.exec(there)![0];
      if (there !== '' && first !== names)
        throw new DataError(
          'mismatch',
          path,
          `[csvLog] ${path} has the columns ${first}, this training ${names}; take another file`,
        );
      // A line that a crash cut off is ended.
      const end = there === '' ? `${names}\n` : there.endsWith('\n') ? '' : '\n';
      await append(path, end + line);
      begun = true;
    },
  };
}

/**
 * JSON lines: an object for each epoch. NaN and infinities, which JSON lacks, are text. A training that goes on adds to the file.
 *
 * @throws DataError `missing` if it cannot be written: the training ends with it
 * @example
 * ```ts no-run: writes a file
 * const callbacks = [jsonLinesLog('runs/mlp/epochs.jsonl')]; // an option of fit
 * ```
 */
export function jsonLinesLog(path: string): EpochLog {
  const shown = (_: string, value: unknown): unknown =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
  return { onEpochEnd: (report) => append(path, `${JSON.stringify(row(report), shown)}\n`) };
}
