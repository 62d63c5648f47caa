/** The job: data, network, training with a test after every epoch, results. */
import { compile, seed } from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { batches, type RowSource, encodeSafetensors, subset } from '@polygrad/data';
import { loadIdxFolder, loadMnist, type MnistSplits } from '@polygrad/data/node';
import { Adam, accuracy, type Callback, crossEntropy, type EpochReport, fit, hostState, progress } from '@polygrad/nn';
import { chooseEngine } from './engine.ts';
import { UsageError } from './errors.ts';
import { DigitNet } from './model.ts';
import type { Options } from './options.ts';
import { OutputFolder } from './output.ts';
import { confusionChart, type LossPoint, trainingChart } from './report/charts.ts';
import { confusionMatrix } from './report/confusion.ts';

/** What summary.json holds. */
export interface Summary {
  readonly engine: string;
  readonly device: string;
  readonly seed: number;
  readonly parameters: number;
  readonly epochs: readonly EpochSummary[];
}

/** One epoch: mean training loss, share of test images recognised after it, time of its training steps. */
export interface EpochSummary {
  readonly loss: number;
  readonly testAccuracy: number;
  readonly seconds: number;
}

type Images = RowSource<'x' | 'y'>;

const TEST_BATCH = 500;
const READ_EVERY = 50;

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}

function summaryOf(report: EpochReport): EpochSummary {
  return {
    loss: report.loss,
    testAccuracy: report.validation?.metrics.accuracy ?? 0,
    seconds: Math.round(1000 * report.seconds) / 1000,
  };
}

function epochLine(report: EpochReport, epochs: number): string {
  const { loss, testAccuracy, seconds } = summaryOf(report);
  return `epoch ${report.epoch + 1}/${epochs}  loss ${loss.toFixed(4)}  test accuracy ${percent(testAccuracy)}  ${seconds.toFixed(1)} s`;
}

/** Collects the mean loss between two reads of the running mean. */
function lossCurve(points: LossPoint[]): Callback {
  let last = { step: 0, total: 0 };
  return {
    onEpochBegin() {
      last = { step: 0, total: 0 };
    },
    onStep({ epoch, step, steps, loss }) {
      if (loss === null || step % READ_EVERY !== 0) return;
      const total = loss * step;
      points.push({
        at: epoch + (step + last.step) / 2 / (steps ?? step),
        loss: (total - last.total) / (step - last.step),
      });
      last = { step, total };
    },
    onEpochEnd({ epoch, loss, steps }) {
      // Epochs too short for a read in between are one point.
      if (last.step === 0) points.push({ at: epoch + 0.5, loss });
      last = { step: steps, total: 0 };
    },
  };
}

/** The part of a split that is used. */
function part(set: Images, name: string, limit: number | undefined): Images {
  if (set.size === 0) throw new UsageError(`the ${name} set has no images`);
  return subset(set, 0, Math.min(limit ?? set.size, set.size));
}

/** Trains as the options say, tells `print` about it, writes the results, and returns what is in summary.json. */
export async function train(options: Options, print: (line: string) => void): Promise<Summary> {
  const folder = await OutputFolder.open(options.out);
  const sets = options.data === undefined ? await loadMnist() : await loadIdxFolder(options.data);
  const engine = await chooseEngine(options.engine, options.threads);
  try {
    return await trainOn(engine, sets, folder, options, print);
  } finally {
    engine.dispose();
  }
}

async function trainOn(
  engine: IEngine,
  sets: MnistSplits,
  folder: OutputFolder,
  options: Options,
  print: (line: string) => void,
): Promise<Summary> {
  const { height, width, classes } = sets.train;
  if (height < 4 || width < 4)
    throw new UsageError(`images are ${height} x ${width}; the network needs 4 x 4 at least`);
  const trainSet = part(sets.train, 'training', options.limit);
  const testSet = part(sets.test, 'test', options.limit);

  seed(options.seed);
  using model = new DigitNet(height, width, classes);
  using optimizer = new Adam(model.parameters(), { lr: 1e-3 });
  const parameters = model.parameterCount();
  print(`${trainSet.size} training and ${testSet.size} test images of ${height} x ${width}, ${classes} classes`);
  print(`${parameters} parameters, engine ${engine.name} (${engine.device}), seed ${options.seed}`);

  const points: LossPoint[] = [];
  const loader = { batchSize: options.batch, shuffle: true, seed: options.seed, reuse: true };
  const history = await fit(model, batches(trainSet, loader), {
    optimizer,
    loss: crossEntropy,
    epochs: options.epochs,
    metrics: { accuracy },
    validation: batches(testSet, { batchSize: TEST_BATCH, reuse: true }),
    compile,
    readEvery: READ_EVERY,
    callbacks: [lossCurve(points), progress('auto', epochLine, print)],
  });
  const summary: Summary = {
    engine: engine.name,
    device: engine.device,
    seed: options.seed,
    parameters,
    epochs: history.epochs.map(summaryOf),
  };

  const counts = await confusionMatrix(model, testSet, classes, TEST_BATCH);
  const accuracies = summary.epochs.map(({ testAccuracy }) => testAccuracy);
  const title = `test accuracy ${percent(accuracies.at(-1) ?? 0)} after ${options.epochs} epochs`;
  const weights = encodeSafetensors(await hostState(model.stateDict()), { format: 'pt' });
  const written = [
    await folder.write('weights.safetensors', weights),
    await folder.write('training.svg', trainingChart(points, accuracies, title)),
    await folder.write('confusion.svg', confusionChart(counts, title)),
    await folder.write('summary.json', `${JSON.stringify(summary, null, 2)}\n`),
  ];
  print(`wrote ${written.join(', ')}`);
  return summary;
}
