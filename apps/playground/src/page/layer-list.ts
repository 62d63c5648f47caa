/** The list of layers as the visitor edits it: a row for each layer, with its sizes, and buttons to move and remove it. */
import {
  DEFAULT_LAYERS,
  LayerError,
  type LayerKind,
  type LayerShape,
  type LayerSpec,
  type Limit,
  LIMITS,
  newLayer,
  planNetwork,
  printLayers,
} from '../common/layers.ts';
import type { NetworkReport, NetworkSettings } from '../common/protocol.ts';
import { button, byId, element } from '../view/dom.ts';
import { guarded } from './notices.ts';
import { count, short } from '../view/numbers.ts';

const KIND_NAMES: Readonly<Record<LayerKind, string>> = {
  conv: 'Convolution',
  pool: 'Max pooling',
  linear: 'Linear',
};

const shapeText = (shape: LayerShape): string =>
  shape.length === 1 ? `${shape[0]} numbers` : shape.join('\u2009×\u2009');

/** The sizes of a layer that can be edited: property and limits. */
function fieldsOf(layer: LayerSpec): readonly (readonly [string, Limit])[] {
  switch (layer.kind) {
    case 'conv':
      return [
        ['channels', LIMITS.channels],
        ['kernel', LIMITS.kernel],
      ];
    case 'pool':
      return [['size', LIMITS.size]];
    case 'linear':
      return [['units', LIMITS.units]];
    default:
      return layer satisfies never;
  }
}

export class LayerList {
  readonly #list: HTMLElement = byId('layers', HTMLOListElement);
  readonly #error: HTMLElement = byId('network-error', HTMLParagraphElement);
  readonly #summary: HTMLElement = byId('network-summary', HTMLParagraphElement);
  readonly #build: HTMLButtonElement = byId('build', HTMLButtonElement);
  readonly #seed: HTMLInputElement = byId('seed', HTMLInputElement);
  #layers: readonly LayerSpec[];
  /** What is built now. */
  #built = '';

  /** @param build makes the network; the list shows what came of it by `show` */
  constructor(layers: readonly LayerSpec[], build: (settings: NetworkSettings) => Promise<void>) {
    this.#layers = layers;
    this.#build.addEventListener('click', () => guarded(() => build(this.settings())));
    this.#seed.addEventListener('input', () => this.#check());
    byId('default-layers', HTMLButtonElement).addEventListener('click', () => this.#set(DEFAULT_LAYERS));
    for (const add of document.querySelectorAll<HTMLButtonElement>('[data-add]')) {
      add.addEventListener('click', () => this.#add(add.dataset.add as LayerKind));
    }
    this.#draw();
  }

  /** What the fields say. Throws an Error in words for a seed or layers that cannot be. */
  settings(): NetworkSettings {
    planNetwork(this.#layers);
    const seed = this.#seed.valueAsNumber;
    if (!Number.isInteger(seed) || seed < 0 || seed > 4294967295) {
      throw new Error('The seed must be a whole number from 0 to 4,294,967,295.');
    }
    return { layers: this.#layers, seed };
  }

  /** A network has been built: the list shows its layers. */
  show({ layers, seed }: NetworkReport): void {
    this.#seed.value = String(seed);
    this.#built = this.#key(layers, String(seed));
    this.#set(layers);
  }

  #key(layers: readonly LayerSpec[], seed: string): string {
    return `${printLayers(layers)}; ${seed}`;
  }

  #set(layers: readonly LayerSpec[]): void {
    this.#layers = layers;
    this.#draw();
  }

  #add(kind: LayerKind): void {
    const firstLinear = this.#layers.findIndex((layer) => layer.kind === 'linear');
    const at = kind === 'linear' || firstLinear < 0 ? this.#layers.length : firstLinear;
    this.#set(this.#layers.toSpliced(at, 0, newLayer(kind)));
    this.#focus(at, 'input');
  }

  #remove(index: number): void {
    this.#set(this.#layers.toSpliced(index, 1));
    if (this.#layers.length > 0) this.#focus(Math.min(index, this.#layers.length - 1), '.remove');
    else document.querySelector<HTMLElement>('[data-add]')?.focus();
  }

  #move(index: number, by: -1 | 1): void {
    const layer = this.#layers[index]!;
    this.#set(this.#layers.toSpliced(index, 1).toSpliced(index + by, 0, layer));
    const row = this.#list.children[index + by];
    const same = row?.querySelector<HTMLButtonElement>(by < 0 ? '.up' : '.down');
    (same?.disabled ? row?.querySelector<HTMLButtonElement>(by < 0 ? '.down' : '.up') : same)?.focus();
  }

  #focus(index: number, selector: string): void {
    this.#list.children[index]?.querySelector<HTMLElement>(selector)?.focus();
  }

  #draw(): void {
    this.#list.replaceChildren(...this.#layers.map((layer, index) => this.#row(layer, index)));
    this.#check();
  }

  #row(layer: LayerSpec, index: number): HTMLElement {
    const name = `layer ${index + 1}, ${KIND_NAMES[layer.kind].toLowerCase()}`;
    const fields = fieldsOf(layer).map(([property, { least, most, name: label }]) => {
      const input = element('input', {
        type: 'number',
        min: least,
        max: most,
        step: 1,
        inputmode: 'numeric',
        value: String(layer[property as keyof LayerSpec]),
        'aria-label': `${label} of ${name}`,
      });
      input.addEventListener('input', () => {
        this.#layers = this.#layers.with(index, { ...layer, [property]: input.valueAsNumber } as LayerSpec);
        layer = this.#layers[index]!;
        this.#check();
      });
      return element('label', {}, input, element('span', { 'aria-hidden': 'true' }, label));
    });
    const last = this.#layers.length - 1;
    return element(
      'li',
      { class: 'layer' },
      element('span', { class: 'layer-kind' }, KIND_NAMES[layer.kind]),
      element('span', { class: 'layer-shape' }),
      element('span', { class: 'layer-fields' }, ...fields),
      element(
        'span',
        { class: 'layer-buttons' },
        button('↑', () => this.#move(index, -1), {
          class: 'up',
          'aria-label': `Move up ${name}`,
          disabled: index === 0,
        }),
        button('↓', () => this.#move(index, 1), {
          class: 'down',
          'aria-label': `Move down ${name}`,
          disabled: index === last,
        }),
        button('×', () => this.#remove(index), { class: 'remove', 'aria-label': `Remove ${name}` }),
      ),
    );
  }

  /** Shapes, number of parameters, what is wrong, and whether there is anything to build. */
  #check(): void {
    const rows = [...this.#list.children];
    for (const row of rows) row.classList.remove('wrong');
    try {
      const { layers } = this.settings();
      const { shapes, parameters, work } = planNetwork(layers);
      for (const [index, shape] of shapes.entries()) {
        rows[index]!.querySelector('.layer-shape')!.textContent = `→ ${shapeText(shape)}`;
      }
      const changed = this.#key(layers, this.#seed.value) !== this.#built;
      this.#summary.textContent = `${count(parameters)} parameters, ${work < 1e6 ? count(work) : `${short(work / 1e6)} million`} multiplications for an image${changed ? ' – not built yet; building starts with new weights' : ''}`;
      this.#error.textContent = '';
      this.#build.disabled = !changed;
    } catch (error) {
      if (error instanceof LayerError) rows[error.index]?.classList.add('wrong');
      for (const row of rows) row.querySelector('.layer-shape')!.textContent = '';
      this.#summary.textContent = '';
      this.#error.textContent = (error as Error).message;
      this.#build.disabled = true;
    }
  }
}
