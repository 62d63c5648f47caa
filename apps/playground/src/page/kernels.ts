/** The kernels of one training step: a table, and the text of the one that is looked at. */
import { engineTitle } from '../common/engine-names.ts';
import type { KernelLine, StepProfile, TrainerApi } from '../common/protocol.ts';
import { button, byId, element } from '../view/dom.ts';
import { guarded } from './notices.ts';
import { bytes, count, short, time } from '../view/numbers.ts';

const LANGUAGES: Readonly<Record<string, string>> = {
  wasm: 'WebAssembly',
  wgsl: 'WGSL',
  opencl: 'OpenCL C',
  ptx: 'PTX',
};

const size = ([x, y, z]: readonly [number, number, number]): string =>
  z > 1 ? `${x} × ${y} × ${z}` : y > 1 ? `${x} × ${y}` : `${x}`;

export class KernelPanel {
  readonly #inspect: HTMLButtonElement = byId('inspect', HTMLButtonElement);
  readonly #order: HTMLSelectElement = byId('kernel-order', HTMLSelectElement);
  readonly #summary: HTMLElement = byId('kernels-summary', HTMLParagraphElement);
  readonly #table: HTMLElement = byId('kernel-table', HTMLDivElement);
  readonly #detail: HTMLElement = byId('kernel-detail', HTMLDivElement);
  #profile: StepProfile | null = null;
  #shown = -1;

  constructor(api: TrainerApi) {
    this.#inspect.addEventListener('click', () =>
      guarded(async () => {
        this.#inspect.disabled = true;
        this.#summary.textContent = 'Running a step …';
        try {
          this.#show(await api.profileStep());
        } catch (error) {
          this.#summary.textContent = '';
          throw error;
        } finally {
          this.#inspect.disabled = false;
        }
      }),
    );
    this.#order.addEventListener('change', () => this.#draw());
  }

  ready(): void {
    this.#inspect.disabled = false;
  }

  #show(profile: StepProfile): void {
    this.#profile = profile;
    this.#shown = -1;
    this.#detail.replaceChildren();
    const { kernels, engine, batch, submits } = profile;
    const measured = kernels.every((kernel) => kernel.milliseconds !== null);
    const total = kernels.reduce((sum, kernel) => sum + (kernel.milliseconds ?? 0), 0);
    const flops = kernels.reduce((sum, kernel) => sum + kernel.flops, 0);
    this.#summary.textContent =
      `A step of ${batch} images: ${kernels.length} kernels in ${submits === 1 ? 'one batch' : `${submits} batches`}, ` +
      `${short(flops / 1e6)} million operations` +
      (measured
        ? `, ${time(total)} on ${engineTitle(engine)}.`
        : `. ${engineTitle(engine)} does not measure single kernels here.`);
    this.#draw();
  }

  #draw(): void {
    const profile = this.#profile;
    if (profile === null) return;
    const longest = Math.max(...profile.kernels.map((kernel) => kernel.milliseconds ?? 0));
    const rows = profile.kernels.map((kernel, index) => ({ kernel, index }));
    if (this.#order.value === 'time') {
      rows.sort((a, b) => (b.kernel.milliseconds ?? 0) - (a.kernel.milliseconds ?? 0));
    }
    const head = ['Kernel', 'Time', '', 'Operations', 'Bytes', 'Groups', 'Threads'].map((text) =>
      text === '' ? element('td') : element('th', { scope: 'col' }, text),
    );
    const table = element(
      'table',
      {},
      element('caption', { class: 'hidden' }, 'Kernels of one training step'),
      element('thead', {}, element('tr', {}, ...head)),
      element('tbody', {}, ...rows.map(({ kernel, index }) => this.#row(kernel, index, longest))),
    );
    this.#table.replaceChildren(
      element('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table of kernels' }, table),
    );
  }

  #row(kernel: KernelLine, index: number, longest: number): HTMLElement {
    const open = button(`${index + 1}. ${kernel.name}`, () => this.#open(index), {
      class: 'link',
      'aria-pressed': String(index === this.#shown),
      'data-kernel': index,
    });
    const { grid, group, flops, bytes: moved, milliseconds } = kernel;
    const bar = element('span', { class: 'bar' });
    if (milliseconds !== null && longest > 0) bar.style.width = `${(100 * milliseconds) / longest}%`;
    return element(
      'tr',
      {},
      element('th', { scope: 'row' }, open),
      element('td', {}, milliseconds === null ? '–' : milliseconds === 0 ? '≈ 0' : time(milliseconds)),
      element('td', { class: 'time-bar', 'aria-hidden': 'true' }, element('span', { class: 'bar-track' }, bar)),
      element('td', {}, count(flops)),
      element('td', {}, bytes(moved)),
      element('td', {}, size(grid)),
      element('td', {}, size(group)),
    );
  }

  #open(index: number): void {
    const kernel = this.#profile!.kernels[index]!;
    this.#shown = index;
    for (const other of this.#table.querySelectorAll('[data-kernel]')) {
      other.setAttribute('aria-pressed', String(other.getAttribute('data-kernel') === String(index)));
    }
    const { name, program, source, language } = kernel;
    const parts = [listing('Program of the compiler', `program of ${name}`, program, true)];
    if (source !== null) {
      const title = LANGUAGES[language ?? ''] ?? language ?? 'Device code';
      parts.push(listing(title, `${title} of ${name}`, source, false));
    }
    const title = element('h3', { tabindex: -1 }, `Kernel ${index + 1}: ${name}`);
    this.#detail.replaceChildren(title, ...parts);
    title.focus();
  }
}

function listing(title: string, label: string, text: string, open: boolean): HTMLElement {
  const lines = text.split('\n').length;
  return element(
    'details',
    { open },
    element('summary', {}, `${title} (${count(lines)} lines)`),
    element('pre', { tabindex: 0, role: 'region', 'aria-label': label }, element('code', {}, text)),
  );
}
