/** Chromium without a window, for tests: found where the system keeps it, started with a profile of its own. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

/** Milliseconds for anything that only hangs if it takes so long, however busy the machine is. */
export const patience = 300_000;

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Path of the browser (POLYGRAD_CHROMIUM names another), or null where there is none. */
export function findChromium() {
  const named = process.env.POLYGRAD_CHROMIUM;
  return (named ? [named] : places).find((path) => existsSync(path)) ?? null;
}

/** What Chromium is started with: no window, nothing from outside, WebGPU on the processor where there is no card. */
export const chromiumArguments = [
  '--headless=new',
  '--no-sandbox',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-dev-shm-usage',
  // Without a graphics card: WebGPU through SwiftShader.
  '--enable-unsafe-webgpu',
];

/** Gives pages WebGPU, on the processor (SwiftShader) where there is no GPU. */
export const withWebGpu = ['--enable-unsafe-webgpu'];

/** Starts the browser at `path`, with more arguments if given; `close` ends it and removes its profile. */
export async function startChromium(path, more = []) {
  const profile = mkdtempSync(join(tmpdir(), 'polygrad-chromium-'));
  const remove = () => rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  try {
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: path,
      headless: false,
      args: [...chromiumArguments, ...more],
      timeout: patience,
    });
    return { context, close: () => context.close().finally(remove) };
  } catch (error) {
    remove();
    throw error;
  }
}
