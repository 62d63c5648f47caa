/** Messages at the top of the page: what went wrong and what to do. Each can be closed. */
import { button, byId, element } from '../view/dom.ts';

const place = (): HTMLElement => byId('notices', HTMLDivElement);

/** Shows a message once; the same text again moves nothing. */
export function notify(message: string, kind: 'trouble' | 'note' = 'trouble'): void {
  const there = [...place().children].some((child) => child.firstElementChild?.textContent === message);
  if (there) return;
  const notice = element('div', { class: `notice ${kind}`, role: kind === 'trouble' ? 'alert' : 'status' });
  notice.append(
    element('p', {}, message),
    button('Close', () => notice.remove(), { 'aria-label': 'Close this message' }),
  );
  place().append(notice);
}

/** Takes all messages away. */
export function clearNotices(): void {
  place().replaceChildren();
}

/** Runs what a visitor asked for; failures become messages. */
export async function guarded<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    notify(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}
