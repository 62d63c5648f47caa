/**
 * TensorBoard's event files: what a training measured, for its charts. Node only.
 *
 * A file is records. A record is a length, the masked CRC-32C of the length, an `Event` message, and the masked CRC-32C of that. Messages are
 * protocol buffers, written by `pbf`. Sources: tensorflow/core/lib/io/record_writer.h, core/util/event.proto, core/framework/summary.proto.
 */
import { appendFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { PbfWriter } from 'pbf';
import { checkFits, checkInteger, checkOptions, isList } from '../errors.ts';
import { maskedCrc32c } from './crc32c.ts';
import type { EpochLog } from './logs.ts';
import { makeFolder, unwritten } from './write.ts';

const op = 'EventWriter';

/** Bars of a histogram. */
const buckets = 64;

type Writing = (message: PbfWriter) => void;

/** A record around a message. */
function recordOf(message: Uint8Array): Uint8Array {
  const record = new Uint8Array(16 + message.length);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(message.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(message, 12);
  view.setUint32(12 + message.length, maskedCrc32c(message), true);
  return record;
}

/** `HistogramProto` of values: as many bars of equal width, each with its upper end. */
function writeHistogram(values: ArrayLike<number>, message: PbfWriter): void {
  let [least, most, sum, squares] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
    squares += value * value;
  }
  const count = most > least ? buckets : 1;
  const width = (most - least) / count;
  const bars = new Array<number>(count).fill(0);
  for (let i = 0; i < values.length; i++)
    bars[width > 0 ? Math.min(count - 1, Math.floor((values[i]! - least) / width)) : 0]!++;
  message.writeDoubleField(1, least);
  message.writeDoubleField(2, most);
  message.writeDoubleField(3, values.length);
  message.writeDoubleField(4, sum);
  message.writeDoubleField(5, squares);
  const limits = bars.map((_, bar) => (bar === count - 1 ? most : least + width * (bar + 1)));
  message.writePackedDouble(6, limits);
  message.writePackedDouble(7, bars);
}

/**
 * Writes an event file. Records wait in memory until `flush`; what was flushed stays readable whatever happens to the program.
 *
 * @example
 * ```ts no-run: writes a file
 * const events = await EventWriter.open('runs/mlp');
 * events.scalar('loss', 0.5, 1);
 * events.histogram('weights', new Float32Array([0, 1, 1]), 1);
 * await events.flush();
 * ```
 */
export class EventWriter {
  /** The file. */
  readonly path: string;
  readonly #Message: typeof PbfWriter;
  #waiting: Uint8Array[] = [];
  #last: Promise<void> = Promise.resolve();

  private constructor(path: string, Message: typeof PbfWriter) {
    this.path = path;
    this.#Message = Message;
    this.#event(0, (event) => event.writeStringField(3, 'brain.Event:2'));
  }

  /**
   * Begins a file in a folder, which is made if need be. TensorBoard shows all files of a folder as one run: a training that goes on adds one.
   *
   * @throws DataError `missing` if it cannot be written
   */
  static async open(folder: string): Promise<EventWriter> {
    checkFits(op, 'folder', folder, typeof folder === 'string', 'a path');
    const { PbfWriter: Message } = await import('pbf');
    const now = Date.now();
    const name = `events.out.tfevents.${Math.floor(now / 1000)}.${hostname()}.${process.pid}.${now % 1000}`;
    const writer = new EventWriter(join(folder, name), Message);
    await makeFolder(folder).catch((error: unknown) => {
      throw unwritten(folder, error);
    });
    await writer.flush();
    return writer;
  }

  #event(step: number, fill: Writing): void {
    const event = new this.#Message();
    event.writeDoubleField(1, Date.now() / 1000);
    event.writeVarintField(2, step);
    fill(event);
    this.#waiting.push(recordOf(event.finish()));
  }

  #value(tag: string, step: number, fill: Writing): void {
    checkFits(op, 'tag', tag, typeof tag === 'string' && tag !== '', 'a text');
    checkInteger(op, 'step', step, 0);
    this.#event(step, (event) =>
      event.writeMessage(
        5,
        (_, summary) =>
          summary.writeMessage(
            1,
            (__, value) => {
              value.writeStringField(1, tag);
              fill(value);
            },
            null,
          ),
        null,
      ),
    ); // prettier-ignore
  }

  /** A number of a step: a point of the chart `tag`; 'train/loss' and 'train/accuracy' stand together. @throws DataError `argument` */
  scalar(tag: string, value: number, step: number): void {
    checkFits(op, 'value', value, typeof value === 'number', 'a number');
    this.#value(tag, step, (message) => message.writeFloatField(2, value));
  }

  /** How the values of a step are spread, such as those of weights. @throws DataError `argument`, also for values that are not finite */
  histogram(tag: string, values: ArrayLike<number>, step: number): void {
    const isWanted = isList(values) || (ArrayBuffer.isView(values) && !(values instanceof DataView));
    checkFits(op, 'values', values, isWanted && values.length > 0, 'a list of numbers');
    checkFits(op, 'values', values, Array.prototype.every.call(values, Number.isFinite), 'all finite');
    this.#value(tag, step, (message) =>
      message.writeMessage(5, (_, histogram) => writeHistogram(values, histogram), null),
    );
  }

  /** Writes pending events. Calls write one after the other. @throws DataError `missing` if it cannot be written; the events stay pending */
  flush(): Promise<void> {
    const write = async (): Promise<void> => {
      const records = this.#waiting;
      this.#waiting = [];
      if (records.length === 0) return;
      try {
        await appendFile(this.path, Buffer.concat(records));
      } catch (error) {
        this.#waiting = [...records, ...this.#waiting];
        throw unwritten(this.path, error);
      }
    };
    const written = this.#last.then(write);
    this.#last = written.catch(() => {});
    return written;
  }
}

/** Options of `tensorBoard`. */
export interface TensorBoardOptions {
  /** The learning rate of this optimizer is shown too. */
  readonly optimizer?: { readonly currentRate: number };
  /** Steps between two points of the running loss (default 0: epochs only). It is as new as the last time `fit` read it: `readEvery`. */
  readonly everySteps?: number;
}

/** What the callback takes from the report of a step. */
interface StepOf {
  readonly epoch: number;
  readonly step: number;
  readonly loss: number | null;
  readonly metrics: Readonly<Record<string, number>>;
}

/** A callback of `fit` of `@polygrad/nn`. */
export interface TensorBoardLog extends EpochLog {
  onStep(report: StepOf): void;
  onTrainEnd(): Promise<void>;
}

/**
 * Shows a training in TensorBoard: losses and metrics of each epoch as `train/loss`, `validation/loss` ..., the learning rate, and on request
 * the running loss within epochs. `tensorboard --logdir runs` shows the folders of a folder side by side.
 *
 * @param folder of the run; made if need be
 * @param options optimizer, everySteps (0)
 * @throws DataError `argument`; `missing` where a file cannot be written: the training ends with it
 * @example
 * ```ts no-run: writes a file
 * const model = new Linear(2, 1);
 * const optimizer = new Adam(model.parameters());
 * const callbacks = [tensorBoard('runs/mlp', { optimizer })]; // an option of fit
 * ```
 */
export function tensorBoard(folder: string, options: TensorBoardOptions = {}): TensorBoardLog {
  checkFits('tensorBoard', 'folder', folder, typeof folder === 'string', 'a path');
  checkOptions('tensorBoard', options, { optimizer: 'object', everySteps: 'number' });
  const { optimizer, everySteps = 0 } = options;
  checkInteger('tensorBoard', 'everySteps', everySteps, 0);
  const hasRate = optimizer === undefined || typeof (optimizer.currentRate as unknown) === 'number';
  checkFits('tensorBoard', 'optimizer', optimizer, hasRate, 'an optimizer with a currentRate');
  let opened: Promise<EventWriter> | undefined;
  let steps = 0;
  const points: (readonly [tag: string, value: number, step: number])[] = [];
  const write = async (): Promise<void> => {
    if (points.length === 0) return;
    opened ??= EventWriter.open(folder);
    const events = await opened;
    for (const [tag, value, step] of points.splice(0)) events.scalar(tag, value, step);
    await events.flush();
  };
  return {
    onStep({ loss, metrics }) {
      steps++;
      if (everySteps === 0 || steps % everySteps !== 0 || loss === null) return;
      for (const [name, value] of Object.entries({ loss, ...metrics })) points.push([`steps/${name}`, value, steps]);
    },
    async onEpochEnd({ epoch, loss, metrics, validation, seconds }) {
      for (const [name, value] of Object.entries({ loss, ...metrics })) points.push([`train/${name}`, value, epoch]);
      const checked: Record<string, number> =
        validation === null ? {} : { loss: validation.loss, ...validation.metrics };
      for (const [name, value] of Object.entries(checked)) points.push([`validation/${name}`, value, epoch]);
      if (optimizer !== undefined) points.push(['learning_rate', optimizer.currentRate, epoch]);
      points.push(['seconds', seconds, epoch]);
      await write();
    },
    // A training that fails leaves what it measured.
    onTrainEnd: write,
  };
}
