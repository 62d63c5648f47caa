/** Saving weights to a file of the visitor's and loading them from one. */
import type { NetworkReport, TrainerApi } from '../common/protocol.ts';
import { byId, element } from '../view/dom.ts';
import { clearNotices, guarded } from './notices.ts';

/** @param loaded is told of the network that came from a file */
export function weightsPanel(
  api: TrainerApi,
  loaded: (report: NetworkReport, name: string) => Promise<void>,
): { ready(): void } {
  const save = byId('save', HTMLButtonElement);
  const load = byId('load', HTMLInputElement);
  save.addEventListener('click', () =>
    guarded(async () => {
      const file = await api.save();
      const url = URL.createObjectURL(new Blob([file as Uint8Array<ArrayBuffer>]));
      element('a', { href: url, download: 'weights.safetensors' }).click();
      // Kept long enough for the browser to have read it.
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    }),
  );
  load.addEventListener('change', () =>
    guarded(async () => {
      const [file] = load.files ?? [];
      if (file === undefined) return;
      clearNotices();
      const bytes = new Uint8Array(await file.arrayBuffer());
      // So that the same file can be chosen again.
      load.value = '';
      await loaded(await api.restore(bytes, file.name), file.name);
    }),
  );
  return {
    ready() {
      save.disabled = load.disabled = false;
    },
  };
}
