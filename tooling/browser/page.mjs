/** A page for one piece of work: served, opened, watched for uncaught errors, closed. */
import { patience } from './chromium.mjs';
import { serve } from './server.mjs';

/** Written at once, past whatever swallows the output of tests that pass. */
export const say = (text) => process.stderr.write(`browser: ${text}\n`);

/** Rejects if the work takes longer. */
export function within(seconds, what, work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${seconds} s`)), seconds * 1000);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/**
 * Opens a page that is served the files with the headers, and evaluates a text in it.
 *
 * @param options `tell` is called with what the page passes to `window.tell`; after `seconds` (300 if left out) without a word
 *   from it the work counts as stuck
 * @returns what the text evaluated to, and every uncaught error
 */
export async function inPage(context, files, headers, body, options) {
  const server = await serve(files, headers);
  try {
    return await onPage(context, server.url, body, options);
  } finally {
    await server.close();
  }
}

/** The same for an address that is served already, so that one page finds what another of its origin left. */
export async function onPage(context, url, body, { tell, seconds = patience / 1000 } = {}) {
  const errors = [];
  let page;
  let stop;
  try {
    page = await within(patience / 1000, 'opening a page', context.newPage());
    page.on('pageerror', (error) => errors.push(String(error.stack ?? error)));
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    const crashed = new Promise((_, reject) => page.on('crash', () => reject(new Error('the page crashed'))));
    let heard = performance.now();
    const stuck = new Promise((_, reject) => {
      const look = () => performance.now() - heard > seconds * 1000 && reject(new Error(`no word for ${seconds} s`));
      stop = setInterval(look, 200);
    });
    await page.exposeFunction('tell', (word) => {
      heard = performance.now();
      tell?.(word);
    });
    await page.goto(url, { timeout: patience });
    heard = performance.now();
    const report = await Promise.race([page.evaluate(body), crashed, stuck]);
    return { report, errors };
  } catch (error) {
    throw errors.length === 0 ? error : new Error(`${error.message}; ${errors.join('; ')}`);
  } finally {
    clearInterval(stop);
    await within(60, 'closing a page', Promise.resolve(page?.close())).catch((error) => say(error.message));
  }
}
