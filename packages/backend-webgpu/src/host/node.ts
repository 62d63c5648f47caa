/**
 * Node: WebGPU comes from the npm package `webgpu` (Dawn), which is loaded when it is first asked for.
 *
 * Dawn looks for finished work in a loop of `setImmediate` calls, which keeps one core busy for as long as anything is awaited.
 * `paced` gives it another `setImmediate` for the length of its own calls: the first looks follow each other at once, so
 * that short answers come fast, later ones wait for a timer.
 */
import type { Host } from './host.ts';

interface Dawn {
  create(options: string[]): GPU;
}

/** Held for as long as the process lives: devices crash when the object that made them is collected. */
let entry: Promise<GPU | string> | null = null;

/** Looks follow each other at once for this many milliseconds after something new is asked. */
const eagerMs = 1;
let askedAt = 0;

type Look = (...args: unknown[]) => void;

function look(next: Look, ...args: unknown[]): unknown {
  const run = (): void => intercepted(() => next(...args));
  return performance.now() - askedAt < eagerMs ? realImmediate(run) : setTimeout(run, 1);
}

const realImmediate = globalThis.setImmediate;

function intercepted<T>(call: () => T): T {
  const kept = globalThis.setImmediate;
  globalThis.setImmediate = look as unknown as typeof setImmediate;
  try {
    return call();
  } finally {
    globalThis.setImmediate = kept;
  }
}

async function load(): Promise<GPU | string> {
  let dawn: Dawn;
  try {
    // Its types would bring a second set of WebGPU's names.
    dawn = (await import('webgpu' as string)) as Dawn;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    // The second is what jest says.
    return code === 'ERR_MODULE_NOT_FOUND' || message.startsWith("Cannot find module 'webgpu'")
      ? "the npm package 'webgpu' is not installed: npm install webgpu@0.6.2"
      : `the npm package 'webgpu' does not load: ${message.split('\n')[0]}`;
  }
  // Times of kernels are only rounded off in browsers, where they could give something away.
  return dawn.create(['disable-dawn-features=timestamp_quantization']);
}

function paced<T>(start: () => T): T {
  askedAt = performance.now();
  return intercepted(start);
}

/**
 * Mesa's layer that puts the GPU of the display first asks Wayland for it, whose library writes errors to stderr where there is no
 * session. Without any display there is nothing to put first, so the layer is left out for the length of the call.
 */
function asking<T>(start: () => T): T {
  const { env } = process;
  const reasons = ['XDG_RUNTIME_DIR', 'WAYLAND_DISPLAY', 'DISPLAY', 'NODEVICE_SELECT', 'MESA_VK_DEVICE_SELECT'];
  if (process.platform !== 'linux' || reasons.some((name) => env[name] !== undefined)) return paced(start);
  env.NODEVICE_SELECT = '1';
  try {
    return paced(start);
  } finally {
    delete env.NODEVICE_SELECT;
  }
}

export const host: Host = {
  gpu: () => (entry ??= load()),
  paced,
  asking,
  memoryBytes: () => process.getBuiltinModule?.('node:os').totalmem(),
};
