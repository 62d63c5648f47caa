/** Drawing a digit, or taking one from the test set, and what the network makes of it. */
import { centreDigit, SIDE } from '../digits/centre.ts';
import type { Sample, TrainerApi } from '../common/protocol.ts';
import { byId, element } from '../view/dom.ts';
import { guarded } from './notices.ts';
import { percent } from '../view/numbers.ts';

/** Of the canvas, whose own pixels are 280 x 280 whatever its size on the page. */
const PEN = 21;
/** Milliseconds between two sentences for screen readers. */
const QUIET = 400;

/** Writes a 28 x 28 image into a canvas of its size. */
function paint(canvas: HTMLCanvasElement, pixels: Uint8Array): void {
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(SIDE, SIDE);
  for (const [i, value] of pixels.entries()) image.data.set([value, value, value, 255], 4 * i);
  context.putImageData(image, 0, 0);
}

export class Drawing {
  /** The network has learned nothing yet. */
  fresh = true;
  readonly #api: TrainerApi;
  readonly #canvas: HTMLCanvasElement = byId('canvas', HTMLCanvasElement);
  readonly #context: CanvasRenderingContext2D = this.#canvas.getContext('2d', { willReadFrequently: true })!;
  readonly #seen: HTMLCanvasElement = byId('seen', HTMLCanvasElement);
  readonly #hint: HTMLElement = byId('pad-hint', HTMLSpanElement);
  readonly #prediction: HTMLElement = byId('prediction', HTMLParagraphElement);
  readonly #bars: { bar: HTMLElement; text: HTMLElement; row: HTMLElement }[];
  /** What the network is shown; null for nothing. */
  #image: Uint8Array | null = null;
  #label: number | null = null;
  #page = 0;
  #frame = 0;
  #asking = false;
  #stale = false;
  #words = '';
  #spoken: ReturnType<typeof setTimeout> | undefined;

  constructor(api: TrainerApi) {
    this.#api = api;
    this.#bars = Array.from({ length: 10 }, (_, digit) => {
      const bar = element('span', { class: 'bar' });
      const text = element('span', { class: 'bar-text' }, '–');
      const row = element(
        'li',
        {},
        element('span', { class: 'bar-digit' }, String(digit)),
        element('span', { class: 'bar-track', 'aria-hidden': 'true' }, bar),
        text,
      );
      return { bar, text, row };
    });
    byId('bars', HTMLOListElement).append(...this.#bars.map(({ row }) => row));
    byId('clear', HTMLButtonElement).addEventListener('click', () => this.clear());
    byId('more-samples', HTMLButtonElement).addEventListener('click', () => guarded(() => this.#more()));
    this.#listen();
    this.clear();
  }

  /** The test images are there. */
  async ready(): Promise<void> {
    await this.#showSamples(0);
    byId('more-samples', HTMLButtonElement).disabled = false;
  }

  clear(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#context.fillStyle = '#000';
    this.#context.fillRect(0, 0, this.#canvas.width, this.#canvas.height);
    for (const radio of document.querySelectorAll<HTMLInputElement>('[name=sample]')) radio.checked = false;
    this.#take(null, null);
  }

  /** The network has changed: the same image is read again. */
  refresh(): void {
    if (this.#image !== null) void this.#ask();
  }

  /** Pointer events cover mouse, pen and finger. */
  #listen(): void {
    const canvas = this.#canvas;
    let from: [number, number] | null = null;
    const place = (event: PointerEvent): [number, number] => {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      return [((event.clientX - left) / width) * canvas.width, ((event.clientY - top) / height) * canvas.height];
    };
    const stroke = (to: [number, number]): void => {
      const { fillStyle, lineWidth } = { fillStyle: '#fff', lineWidth: PEN };
      Object.assign(this.#context, { strokeStyle: fillStyle, lineWidth, lineCap: 'round', lineJoin: 'round' });
      this.#context.beginPath();
      this.#context.moveTo(...(from ?? to));
      this.#context.lineTo(...to);
      this.#context.stroke();
      from = to;
    };
    canvas.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      // A picked image is replaced by what is drawn.
      if (this.#label !== null) this.clear();
      canvas.setPointerCapture(event.pointerId);
      from = null;
      stroke(place(event));
      this.#takeDrawing();
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!canvas.hasPointerCapture(event.pointerId)) return;
      for (const part of event.getCoalescedEvents?.() ?? [event]) stroke(place(part));
      this.#takeDrawing();
    });
  }

  /** Once per frame, however many points of the stroke arrive. */
  #takeDrawing(): void {
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#readCanvas();
    });
  }

  #readCanvas(): void {
    const { width, height } = this.#canvas;
    const { data } = this.#context.getImageData(0, 0, width, height);
    const ink = new Uint8Array(width * height);
    for (let i = 0; i < ink.length; i++) ink[i] = data[4 * i]!;
    this.#take(centreDigit({ width, height, ink }), null);
  }

  #take(image: Uint8Array | null, label: number | null): void {
    this.#image = image;
    this.#label = label;
    this.#hint.hidden = image !== null;
    paint(this.#seen, image ?? new Uint8Array(SIDE * SIDE));
    const what = image === null ? 'nothing yet' : label === null ? 'your drawing, centred' : `a test image of ${label}`;
    this.#seen.setAttribute('aria-label', `What the network is shown: ${what}`);
    if (image === null) this.#show(null);
    else void this.#ask();
  }

  /** One question at a time; the last image is always answered. */
  async #ask(): Promise<void> {
    if (this.#asking) {
      this.#stale = true;
      return;
    }
    this.#asking = true;
    try {
      do {
        this.#stale = false;
        const image = this.#image;
        if (image === null) break;
        const result = await guarded(() => this.#api.predict(image));
        if (result === undefined) break;
        if (this.#image !== null) this.#show(result.probabilities);
      } while (this.#stale);
    } finally {
      this.#asking = false;
    }
  }

  #show(probabilities: readonly number[] | null): void {
    const best = probabilities === null ? -1 : probabilities.indexOf(Math.max(...probabilities));
    for (const [digit, { bar, text, row }] of this.#bars.entries()) {
      const share = probabilities?.[digit] ?? 0;
      bar.style.width = `${(100 * share).toFixed(1)}%`;
      text.textContent = probabilities === null ? '–' : percent(share);
      row.classList.toggle('best', digit === best);
    }
    const truth = this.#label === null ? '' : `; the test image is a ${this.#label}`;
    const reads = this.fresh ? 'The network has learned nothing yet and guesses' : 'The network reads';
    const words =
      probabilities === null ? 'Nothing drawn yet.' : `${reads} ${best} (${percent(probabilities[best]!, 0)})${truth}.`;
    this.#words = words;
    if (probabilities === null) this.#say();
    else this.#spoken ??= setTimeout(() => this.#say(), QUIET);
  }

  /** Writes the reading down; what comes in quick succession is said once. */
  #say(): void {
    clearTimeout(this.#spoken);
    this.#spoken = undefined;
    if (this.#prediction.textContent !== this.#words) this.#prediction.textContent = this.#words;
  }

  async #more(): Promise<void> {
    await this.#showSamples(++this.#page);
  }

  async #showSamples(page: number): Promise<void> {
    const samples = await this.#api.samples(page);
    byId('samples', HTMLDivElement).replaceChildren(...samples.map((sample) => this.#sample(sample)));
  }

  #sample({ index, label, pixels }: Sample): HTMLElement {
    const picture = element('canvas', { width: SIDE, height: SIDE, 'aria-hidden': 'true' });
    paint(picture, pixels);
    const radio = element('input', {
      type: 'radio',
      name: 'sample',
      value: label,
      'aria-label': `Test image ${index}, a ${label}`,
    });
    radio.addEventListener('change', () => {
      this.#context.imageSmoothingEnabled = false;
      this.#context.drawImage(picture, 0, 0, this.#canvas.width, this.#canvas.height);
      this.#take(pixels, label);
    });
    return element('label', { class: 'sample' }, radio, picture);
  }
}
