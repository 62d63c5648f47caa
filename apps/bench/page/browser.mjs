/** A browser that can be ended at once, whatever its processes are doing; signals are the command's own business. */
import { chromium } from 'playwright-core';
import { chromiumArguments } from '../../../tooling/browser/chromium.mjs';

/** Starts the browser at `path`. `kill` ends all of its processes. */
export async function openBrowser(path) {
  const server = await chromium.launchServer({
    executablePath: path,
    headless: false,
    args: chromiumArguments,
    timeout: 60_000,
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  try {
    const browser = await chromium.connect(server.wsEndpoint(), { timeout: 60_000 });
    return { context: await browser.newContext(), kill: () => server.kill() };
  } catch (error) {
    await server.kill();
    throw error;
  }
}
