/** The training's controls, figures and plots. */
import { Plot } from '../plots/plot.ts';
import type { Progress, TrainerApi } from '../common/protocol.ts';
import { byId } from '../view/dom.ts';
import { clearNotices, guarded } from './notices.ts';
import { bytes, count, percent, short } from '../view/numbers.ts';

/** From 0 to a little above the most there was; `empty` while there is nothing. */
const fromZero =
  (empty: number) =>
  (_: number, most: number): [number, number] => [0, most > 0 ? most * 1.05 : empty];

function makePlots(): Record<'loss' | 'accuracy' | 'speed' | 'memory', Plot> {
  return {
    loss: new Plot({
      title: 'Loss',
      curves: [{ label: 'training', colour: '--accent' }],
      range: fromZero(1),
      write: short,
    }),
    accuracy: new Plot({
      title: 'Accuracy',
      curves: [
        { label: 'test', colour: '--accent', gaps: true },
        { label: 'training', colour: '--second', dashed: true, gaps: true },
      ],
      range: (least) => [Math.max(0, Math.floor(least * 20) / 20), 1],
      write: (share) => percent(share),
      tick: (share) => percent(share, 0),
    }),
    speed: new Plot({
      title: 'Images per second',
      curves: [{ label: 'training', colour: '--accent' }],
      range: fromZero(1),
      write: short,
    }),
    memory: new Plot({
      title: 'Memory',
      curves: [{ label: 'held', colour: '--accent' }],
      range: fromZero(1e6),
      write: bytes,
    }),
  };
}

/** Milliseconds between two sentences for screen readers while nothing remarkable happens. */
const SAY_EVERY = 10_000;

export class TrainingPanel {
  readonly #api: TrainerApi;
  readonly #train: HTMLButtonElement = byId('train', HTMLButtonElement);
  readonly #restart: HTMLButtonElement = byId('restart', HTMLButtonElement);
  readonly #rate: HTMLInputElement = byId('rate', HTMLInputElement);
  readonly #batch: HTMLSelectElement = byId('batch', HTMLSelectElement);
  readonly #status: HTMLElement = byId('status', HTMLParagraphElement);
  /** For screen readers only: seen, it would be an older step beside the figure's. */
  readonly #spoken: HTMLElement = byId('spoken', HTMLParagraphElement);
  readonly #progress: HTMLElement = byId('progress', HTMLParagraphElement);
  readonly #plots: ReturnType<typeof makePlots> = makePlots();
  #running = false;
  #steps = 0;
  #accuracy: number | null = null;
  #said = 0;
  /** What stood there before kernels were being made; null when none are. */
  #compiling: string | null = null;

  /** @param restart builds the same network anew */
  constructor(api: TrainerApi, restart: () => Promise<void>) {
    this.#api = api;
    const { loss, accuracy, speed, memory } = this.#plots;
    byId('plots', HTMLDivElement).append(loss.figure, accuracy.figure, speed.figure, memory.figure);
    this.#train.addEventListener('click', () => guarded(() => this.toggle()));
    this.#restart.addEventListener('click', () => guarded(restart));
    this.#rate.addEventListener('input', () => this.#sendRate());
    this.#batch.addEventListener('change', () => guarded(() => this.#api.setBatch(Number(this.#batch.value))));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      for (const plot of Object.values(this.#plots)) plot.recolour();
    });
    this.#sendRate();
  }

  get running(): boolean {
    return this.#running;
  }

  /** The network and the images are there. */
  ready(): void {
    this.#train.disabled = this.#restart.disabled = false;
  }

  async toggle(): Promise<void> {
    if (this.#running) {
      this.#train.disabled = true;
      this.say('Stopping, and measuring on the test images …');
      try {
        await this.#api.pause();
      } finally {
        this.#train.disabled = false;
      }
      this.say(`Stopped at step ${count(this.#steps)}${this.#accuracyText()}.`);
    } else {
      clearNotices();
      await this.#api.start();
      this.#setRunning(true);
      this.say('Training …');
    }
  }

  /** A new network: the curves start anew. */
  reset(message: string): void {
    for (const plot of Object.values(this.#plots)) plot.clear();
    this.#accuracy = null;
    this.#steps = 0;
    this.#setRunning(this.#running);
    for (const id of ['loss', 'accuracy', 'speed']) byId(`figure-${id}`, HTMLElement).textContent = '–';
    this.say(message);
  }

  /** Shows a sentence, and has it read out. */
  say(message: string): void {
    if (this.#compiling === null) this.#status.textContent = message;
    else this.#compiling = message;
    this.#spoken.textContent = '';
    this.#said = performance.now();
  }

  /** Kernels are made for what runs first; that takes seconds on some devices. */
  compiling(done: number, total: number): void {
    if (done < total) {
      if (this.#compiling === null) {
        this.#compiling = this.#status.textContent ?? '';
        this.#status.textContent = 'Compiling kernels …';
      }
      this.progress(done, total, `${done} of ${total}`);
    } else if (this.#compiling !== null) {
      this.#status.textContent = this.#compiling;
      this.#compiling = null;
      this.#progress.hidden = true;
    }
  }

  /** How far something is that takes its time; beside the sentence, because nobody wants every number read out. */
  progress(done: number, total: number, words: string): void {
    const bar = this.#progress.querySelector('progress')!;
    if (total > 0) {
      bar.max = total;
      bar.value = done;
    } else bar.removeAttribute('value');
    this.#progress.querySelector('span')!.textContent = words;
    this.#progress.hidden = total > 0 && done >= total;
  }

  show(progress: Progress): void {
    const { step, epochs, loss, testAccuracy, trainAccuracy, imagesPerSecond, usedBytes, pooledBytes } = progress;
    this.#steps = step;
    this.#figure('step', count(step));
    this.#figure('epochs', epochs.toFixed(2));
    this.#figure('memory', bytes(usedBytes + pooledBytes));
    if (loss !== null) {
      this.#figure('loss', short(loss));
      this.#plots.loss.add(step, loss);
      this.#plots.memory.add(step, usedBytes + pooledBytes);
      // As a curve it would lie on the axis: a step's buffers are many times the network.
      this.#plots.memory.remark(`between steps ${bytes(usedBytes)}`);
    }
    if (imagesPerSecond !== null) {
      this.#figure('speed', count(imagesPerSecond));
      this.#plots.speed.add(step, imagesPerSecond);
    }
    if (testAccuracy !== null) {
      this.#accuracy = testAccuracy;
      this.#figure('accuracy', percent(testAccuracy, 2));
    }
    if (testAccuracy !== null || trainAccuracy !== null) {
      this.#plots.accuracy.add(step, testAccuracy, trainAccuracy);
    }
    if (progress.running !== this.#running) this.#setRunning(progress.running);
    if (this.#running && performance.now() - this.#said > SAY_EVERY) {
      this.#said = performance.now();
      this.#spoken.textContent = `Training: step ${count(step)}${this.#accuracyText()}.`;
    }
  }

  #accuracyText(): string {
    return this.#accuracy === null ? '' : `, ${percent(this.#accuracy)} of test images recognised`;
  }

  #figure(name: string, text: string): void {
    byId(`figure-${name}`, HTMLElement).textContent = text;
  }

  #setRunning(running: boolean): void {
    this.#running = running;
    this.#train.textContent = running ? 'Stop' : this.#steps > 0 ? 'Resume' : 'Train';
  }

  #sendRate(): void {
    const rate = Number((10 ** Number(this.#rate.value)).toPrecision(2));
    byId('rate-value', HTMLOutputElement).textContent = short(rate);
    this.#rate.setAttribute('aria-valuetext', short(rate));
    void guarded(() => this.#api.setRate(rate));
  }
}
