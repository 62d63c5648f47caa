/**
 * Progress of a training: a bar in terminals (the library cli-progress, loaded only then and only if installed), a line
 * per epoch elsewhere. Runs where there is no process, too: there it writes to the console.
 */
import type { Callback, EpochReport, StepReport } from './callback.ts';

/** 'auto': a bar in terminals, else lines. */
export type ProgressStyle = 'auto' | 'bar' | 'lines' | 'none';

/** The little that is used of cli-progress. */
interface Bar {
  start(total: number, value: number, payload: Record<string, string>): void;
  update(value: number, payload: Record<string, string>): void;
  setTotal(total: number): void;
  stop(): void;
}

interface BarLibrary {
  SingleBar: new (options: Record<string, unknown>) => Bar;
}

interface ProcessLike {
  readonly stdout?: { readonly isTTY?: boolean; write(text: string): unknown };
}

const host: ProcessLike | undefined = (globalThis as { process?: ProcessLike }).process;

function print(line: string): void {
  if (host?.stdout === undefined) console.log(line);
  else host.stdout.write(`${line}\n`);
}

/** Loads the library under a name that bundlers do not follow: it is optional, and of no use in browsers. */
async function loadBars(): Promise<BarLibrary | null> {
  const name = 'cli-progress';
  try {
    const loaded = (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as BarLibrary & {
      default?: BarLibrary;
    };
    return loaded.default ?? loaded;
  } catch {
    return null;
  }
}

function numbers(values: Readonly<Record<string, number>>, prefix: string = ''): string[] {
  return Object.entries(values).map(([name, value]) => `${prefix}${name} ${value.toFixed(4)}`);
}

/**
 * One line about an epoch. It mentions steps after the first epoch that made plans: each took longer than others.
 *
 * @example
 * epochLine({ epoch: 0, loss: 0.25, metrics: {}, validation: null, seconds: 1.5, steps: 10 }, 3); // 'epoch 1/3  loss 0.2500  1.5 s'
 */
export function epochLine(report: EpochReport, epochs: number): string {
  const parts = [`loss ${report.loss.toFixed(4)}`, ...numbers(report.metrics)];
  if (report.validation !== null) {
    parts.push(
      `validation loss ${report.validation.loss.toFixed(4)}`,
      ...numbers(report.validation.metrics, 'validation '),
    );
  }
  const { planned = 0 } = report;
  const plans = report.epoch > 0 && planned > 0 ? `  new plans in ${planned} of ${report.steps} steps` : '';
  return `epoch ${report.epoch + 1}/${epochs}  ${parts.join('  ')}  ${report.seconds.toFixed(1)} s${plans}`;
}

function barText(report: StepReport): string {
  const parts = report.loss === null ? [] : [`loss ${report.loss.toFixed(4)}`, ...numbers(report.metrics)];
  return [...parts, ...(report.newPlans > 0 ? ['new plan'] : [])].join('  ');
}

/**
 * A callback that shows progress.
 *
 * @param style see `ProgressStyle`; 'bar' falls back to lines where cli-progress is not installed
 * @param line what to print for an epoch (default `epochLine`)
 * @param write prints a line (default: to standard output, or the console where there is none)
 *
 * @example
 * const data = [{ x: tensor([[-2], [2], [-1], [1]]), y: tensor([0, 1, 0, 1], { dtype: 'int32' }) }];
 * const model = new Linear(1, 2);
 * const optimizer = new Adam(model.parameters());
 * const lines = progress('lines', ({ epoch }, epochs) => `${epoch + 1} of ${epochs}`, console.log);
 * await fit(model, data, { optimizer, loss: crossEntropy, epochs: 3, callbacks: [lines] });
 * console.log('done'); //=> done
 */
export function progress(
  style: ProgressStyle = 'auto',
  line: (report: EpochReport, epochs: number) => string = epochLine,
  write: (line: string) => void = print,
): Callback {
  if (style === 'none') return {};
  const wantsBar = style === 'bar' || (style === 'auto' && host?.stdout?.isTTY === true);
  let library: BarLibrary | null = null;
  let bar: Bar | null = null;
  let compiling = false;
  const stop = (): void => {
    bar?.stop();
    bar = null;
  };
  const show = (bars: BarLibrary, value: number, total: number, payload: Record<string, string>): void => {
    if (bar !== null) {
      bar.setTotal(total);
      bar.update(value, payload);
      return;
    }
    bar = new bars.SingleBar({
      format: '{epoch} [{bar}] {value}/{total}  {text}  {eta} s left',
      barCompleteChar: '=',
      barIncompleteChar: ' ',
      hideCursor: true,
      clearOnComplete: true,
      stopOnComplete: false,
      fps: 10,
    });
    bar.start(total, value, payload);
  };
  return {
    async onTrainBegin() {
      if (wantsBar) library = await loadBars();
    },
    onCompile({ done, total }) {
      if (library !== null) show(library, done, total, { epoch: 'kernels', text: '' });
      else if (!compiling) write(`compiling ${total} kernels`);
      compiling = true;
    },
    onStep(report, { epochs }) {
      if (compiling) stop();
      compiling = false;
      if (library === null || report.steps === undefined) return;
      show(library, report.step, report.steps, {
        epoch: `epoch ${report.epoch + 1}/${epochs}`,
        text: barText(report),
      });
      if (report.step === report.steps) stop();
    },
    onEpochEnd(report, { epochs }) {
      stop();
      write(line(report, epochs));
    },
    onTrainEnd: stop,
  };
}
