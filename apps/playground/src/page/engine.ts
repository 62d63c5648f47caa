/** Which engines there are, which one runs and why, and the choice of another. */
import type { EngineChoice, EngineReport, TrainerApi } from '../common/protocol.ts';
import { engineText, engineTitle } from '../common/engine-names.ts';
import { byId, element } from '../view/dom.ts';
import { guarded } from './notices.ts';

export class EnginePanel {
  readonly #use: HTMLButtonElement = byId('use-engine', HTMLButtonElement);
  #current = '';

  /** @param changed is told of a new engine */
  constructor(api: TrainerApi, changed: (report: EngineReport) => void) {
    this.#use.addEventListener('click', () =>
      guarded(async () => {
        const chosen = document.querySelector<HTMLInputElement>('[name=engine]:checked');
        if (chosen === null) return;
        this.#use.disabled = true;
        const line = byId('engine-line', HTMLElement);
        const before = line.textContent;
        line.textContent = `${engineTitle(this.#current)}, moving to ${engineTitle(chosen.value)} …`;
        try {
          const report = await api.useEngine(chosen.value);
          this.show(report);
          changed(report);
        } catch (error) {
          line.textContent = before;
          throw error;
        } finally {
          this.#check();
        }
      }),
    );
  }

  show({ current, device, choices, notes }: EngineReport): void {
    this.#current = current;
    byId('engine-line', HTMLElement).textContent = engineText(current, device);
    byId('engines', HTMLDivElement).replaceChildren(...choices.map((choice) => this.#row(choice)));
    byId('engine-notes', HTMLUListElement).replaceChildren(...notes.map((note) => element('li', {}, note)));
    this.#check();
  }

  #row({ name, device, reason, usable }: EngineChoice): HTMLElement {
    const runs = name === this.#current;
    const id = `engine-${name}`;
    const radio = element('input', {
      type: 'radio',
      name: 'engine',
      id,
      value: name,
      checked: runs,
      disabled: !usable,
      'aria-describedby': `${id}-why`,
    });
    radio.addEventListener('change', () => this.#check());
    const state = runs ? 'runs now' : usable ? 'can be used' : 'not usable here';
    return element(
      'div',
      { class: `engine ${usable ? '' : 'unusable'}` },
      radio,
      element(
        'label',
        { for: id },
        element('strong', {}, engineTitle(name)),
        element('span', { class: runs ? 'tag on' : 'tag' }, state),
      ),
      element(
        'p',
        { id: `${id}-why` },
        device === '' || device === engineTitle(name) ? reason : `${device}: ${reason}`,
      ),
    );
  }

  #check(): void {
    const chosen = document.querySelector<HTMLInputElement>('[name=engine]:checked');
    this.#use.disabled = chosen === null || chosen.value === this.#current;
  }
}
