/** Without an OpenCL library, and without a device: everything imports, and says why. Each in a process of its own. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isCutShort } from '@polygrad/addon';
import { EngineMissingError } from '@polygrad/core/engine';
import { describe, expect, it } from 'vitest';
import { ProgramCache } from './program-cache.ts';
import { hasDevice } from './fixtures/device.ts';
import { createOpenClEngine, openClProvider } from './index.ts';

const binary = fileURLToPath(new URL('../native/build/opencl.node', import.meta.url));

/** What the addon answers in another process: the reason of `open`, and how many devices there are. */
function ask(env: Record<string, string>): { reason: string; devices: number } {
  const script = `
    const addon = require(${JSON.stringify(binary)});
    const reason = addon.open(process.env.POLYGRAD_OPENCL_LIBRARY ?? '');
    console.log(JSON.stringify({ reason, devices: reason === '' ? addon.devices().length : 0 }));`;
  return JSON.parse(
    execFileSync(process.execPath, ['-e', script], { env: { ...process.env, ...env }, encoding: 'utf8' }),
  );
}

describe.skipIf(!existsSync(binary))('the addon', () => {
  it('says why a library cannot be opened', () => {
    const { reason } = ask({ POLYGRAD_OPENCL_LIBRARY: '/nowhere/libOpenCL.so.1' });
    expect(reason).toMatch(/\/nowhere\/libOpenCL\.so\.1/);
  });

  it.skipIf(process.platform !== 'linux')('refuses a library that is not OpenCL', () => {
    expect(ask({ POLYGRAD_OPENCL_LIBRARY: 'libc.so.6' }).reason).toMatch(/lacks clGetPlatformIDs: OpenCL 1\.2/);
  });

  it.skipIf(!hasDevice())('finds no device where no driver is registered', () => {
    const empty = mkdtempSync(join(tmpdir(), 'polygrad-icd-'));
    try {
      expect(ask({ OCL_ICD_VENDORS: empty })).toEqual({ reason: '', devices: 0 });
    } finally {
      rmSync(empty, { recursive: true });
    }
  });
});

describe('a binary', () => {
  it.skipIf(!existsSync(binary) || process.platform !== 'linux')('that is cut short is not loaded', () => {
    expect(isCutShort(binary)).toBe(false);
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-addon-'));
    const path = join(folder, 'opencl.node');
    const whole = readFileSync(binary);
    try {
      for (const bytes of [0, 10, 64, 1000, whole.length - 1]) {
        writeFileSync(path, whole.subarray(0, bytes));
        expect(isCutShort(path), `${bytes} bytes`).toBe(true);
      }
      writeFileSync(path, 'x'.repeat(1000));
      expect(isCutShort(path)).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('options', () => {
  it('that are not known or do not fit are refused before anything is opened', () => {
    const wrong: [unknown, string][] = [
      [{ memory: -1 }, 'bad memory: -1; must be a number from 1'],
      [{ tuning: 'fast' }, "bad tuning: 'fast'; must be 'automatic' or 'load' or false"],
      [{ devise: 0 }, "no option 'devise', did you mean 'device'? Known are device, "],
      [{ device: -1 }, 'bad device: -1; must be the index of a device or a part of its name'],
      [{ cache: true }, 'bad cache: true; must be the path of a folder, or false'],
      [{ clblast: 0 }, 'bad clblast: 0; must be true or false'],
    ];
    for (const [options, text] of wrong)
      expect(() => createOpenClEngine(options as object)).toThrow(`[opencl] ${text}`);
  });

  it.skipIf(process.platform !== 'linux')('a cache where no folder can be made is left alone', () => {
    expect(new ProgramCache('/proc/nope/programs').refused).toMatch(/^\/proc\/nope\/programs cannot be used: ENOENT/);
  });
});

describe('the package', () => {
  it('scores 0 with the reason, and throws it when an engine is asked for', async () => {
    // The library of a process is opened once: whoever came first in this one decides.
    const before = process.env.POLYGRAD_OPENCL_DEVICE;
    process.env.POLYGRAD_OPENCL_DEVICE = 'a device nobody has';
    try {
      const probe = await openClProvider.probe();
      expect(probe.score).toBe(0);
      expect(probe.reason).toMatch(
        /no device "a device nobody has"; give a number or a part of the name: 0 = |no OpenCL library|knows no device|native part/,
      );
      expect(() => createOpenClEngine()).toThrow(EngineMissingError);
      expect(() => createOpenClEngine({ device: 99 })).toThrow(EngineMissingError);
    } finally {
      if (before === undefined) delete process.env.POLYGRAD_OPENCL_DEVICE;
      else process.env.POLYGRAD_OPENCL_DEVICE = before;
    }
  });
});
