/** One plot: a caption with the last value, and curves over training steps drawn by uPlot in the page's colours. */
import uPlot from 'uplot';
import { colour, element } from '../view/dom.ts';
import { count } from '../view/numbers.ts';
import { Series } from './series.ts';

/** A curve. `colour` names a custom property. */
export interface Curve {
  readonly label: string;
  readonly colour: string;
  readonly dashed?: boolean;
  /** Connect over points where it was not measured. */
  readonly gaps?: boolean;
}

export interface PlotOptions {
  readonly title: string;
  readonly curves: readonly Curve[];
  /** Least and most of the y axis from the data's. */
  readonly range: (least: number, most: number) => [number, number];
  /** How a value is written in words, and at the axis unless `tick` says otherwise. */
  readonly write: (value: number) => string;
  readonly tick?: (value: number) => string;
}

/** Pixels of the letters where the page's text has its usual size of 16. */
const LETTERS = 11;

/** How much larger the visitor's text is than usual. */
const zoom = (): number => Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;

export class Plot {
  readonly figure: HTMLElement;
  readonly #options: PlotOptions;
  readonly #series: Series;
  readonly #box: HTMLElement;
  readonly #reading: HTMLElement;
  readonly #remark: HTMLElement = element('span', { class: 'plot-remark' });
  #chart: uPlot | null = null;
  #drawn = false;

  constructor(options: PlotOptions) {
    this.#options = options;
    this.#series = new Series(options.curves.length);
    this.#reading = element('span', { class: 'plot-reading' });
    const keys = options.curves.length > 1 ? options.curves.map((curve) => this.#key(curve)) : [];
    const caption = element(
      'figcaption',
      {},
      element('strong', {}, options.title),
      ...keys,
      this.#remark,
      this.#reading,
    );
    this.#box = element('div', { class: 'plot', role: 'img', 'aria-label': `${options.title}: no values yet` });
    this.figure = element('figure', {}, caption, this.#box);
    new ResizeObserver(() => this.#resize()).observe(this.#box);
  }

  add(x: number, ...values: readonly (number | null)[]): void {
    this.#series.add(x, ...values);
    this.#refresh();
  }

  /** A few words beside the title. */
  remark(words: string): void {
    this.#remark.textContent = words;
  }

  clear(): void {
    this.#series.clear();
    this.remark('');
    this.#refresh();
  }

  /** Takes the colours anew: after the visitor changed between light and dark. */
  recolour(): void {
    this.#chart?.destroy();
    this.#chart = null;
    this.#refresh();
  }

  #key({ label, colour: name, dashed }: Curve): HTMLElement {
    return element('span', { class: `key ${dashed ? 'dashed' : ''}`, 'data-colour': name }, label);
  }

  /** Draws before the next frame, however many points arrive until then. */
  #refresh(): void {
    if (this.#drawn) return;
    this.#drawn = true;
    requestAnimationFrame(() => {
      this.#drawn = false;
      this.#chart ??= this.#make();
      this.#chart.setData(this.#series.columns as uPlot.AlignedData);
      this.#describe();
    });
  }

  /** The caption's reading, and the plot in words for those who do not see it. */
  #describe(): void {
    const [, ...ys] = this.#series.columns;
    const { title, curves, write } = this.#options;
    const last = ys.map((y) => y.findLast((value) => value !== null) ?? null);
    this.#reading.textContent = last[0] === null ? '' : write(last[0]!);
    const words = ys.flatMap((y, i) => {
      const measured = y.filter((value) => value !== null) as number[];
      if (measured.length === 0) return [];
      const name = curves.length > 1 ? `${curves[i]!.label} ` : '';
      return [
        `${name}from ${write(measured[0]!)} to ${write(measured.at(-1)!)}, best and worst ${extremes(measured, write)}`,
      ];
    });
    this.#box.setAttribute('aria-label', `${title}: ${words.length === 0 ? 'no values yet' : words.join('; ')}`);
  }

  #make(): uPlot {
    const { curves, range, write, tick = write } = this.#options;
    const scale = zoom();
    const font = `${Math.round(LETTERS * scale)}px system-ui, sans-serif`;
    const [text, line] = [colour('--muted'), colour('--line')];
    const axis: uPlot.Axis = {
      stroke: text,
      font,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
    };
    const options: uPlot.Options = {
      width: this.#width(),
      height: this.#height(),
      legend: { show: false },
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
      scales: {
        x: { time: false },
        y: { range: (_, least, most) => range(least ?? 0, most ?? 0) },
      },
      axes: [
        {
          ...axis,
          size: 22 * scale,
          gap: 4,
          space: 56 * scale,
          values: (_, ticks) => ticks.map((step) => (Number.isInteger(step) ? count(step) : '')),
          label: 'step',
          labelFont: font,
          labelSize: 14 * scale,
          labelGap: 0,
        },
        { ...axis, size: 52 * scale, gap: 4, values: (_, ticks) => ticks.map(tick), space: 34 * scale },
      ],
      series: [
        {},
        ...curves.map(
          ({ label, colour: name, dashed, gaps }): uPlot.Series => ({
            label,
            stroke: colour(name),
            width: 1.75,
            ...(dashed ? { dash: [5, 4] } : {}),
            spanGaps: gaps ?? false,
            // A line needs two points; the first value is a dot.
            points: { show: (_, i) => this.#lonely(i), size: 6 },
          }),
        ),
      ],
    };
    return new uPlot(options, this.#series.columns as uPlot.AlignedData, this.#box);
  }

  /** True for a column with one value. */
  #lonely(column: number): boolean {
    return this.#series.columns[column]!.filter((value) => value !== null).length === 1;
  }

  #width(): number {
    return Math.max(120, Math.floor(this.#box.clientWidth));
  }

  #height(): number {
    return Math.max(80, Math.floor(this.#box.clientHeight));
  }

  #resize(): void {
    const [width, height] = [this.#width(), this.#height()];
    if (this.#chart !== null && (this.#chart.width !== width || this.#chart.height !== height)) {
      this.#chart.setSize({ width, height });
    }
  }
}

function extremes(values: readonly number[], write: (value: number) => string): string {
  const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
  return `${write(low!)} and ${write(high!)}`;
}
