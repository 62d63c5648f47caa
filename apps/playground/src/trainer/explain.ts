/** Errors in words for a visitor: what happened and what to do, without the library's own prefixes. */
import { DeviceLostError, OutOfMemoryError, PolygradError } from '@polygrad/core';
import { isDataError } from '@polygrad/data';
import { NnError } from '@polygrad/nn';

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** The message without `[where]` in front, as a sentence. */
function plain(message: string): string {
  const text = message.replace(/^\[[^\]]*\]\s*/, '').trim();
  // Names of files stay as they are.
  const sentence = text.replace(/^[a-z]+(?=\s)/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

export function explain(error: unknown): string {
  if (error instanceof OutOfMemoryError) {
    return `Out of memory: ${megabytes(error.requested)} were asked for with ${megabytes(error.live)} in use. Choose a smaller batch or smaller layers.`;
  }
  if (error instanceof DeviceLostError) return plain(error.message);
  if (error instanceof PolygradError && error.code === 'ENGINE_DISPOSED') {
    return 'The engine was closed. Choose an engine again.';
  }
  if (error instanceof NnError && error.message.startsWith('[loadStateDict]')) {
    const what = plain(error.message.replace(/; pass \{.*$/s, ''));
    return `The file holds the weights of another network. ${what} Build the network they belong to, or choose another file.`;
  }
  if (isDataError(error) || error instanceof Error) return plain(error.message);
  return plain(String(error));
}
