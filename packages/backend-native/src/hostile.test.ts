/** Nothing that JavaScript hands to the addon ends the process: wrong numbers, places and arrays are errors; and what becomes of threads. */
import { spawnSync } from 'node:child_process';
import { Worker } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Addon, loadAddon } from './addon.ts';
import { targets } from './testing/targets.ts';

const there = targets().length > 0;
/** Returns 0. */
const nothing = Uint8Array.of(0x31, 0xc0, 0xc3);
/** Values of every kind that no argument takes. */
const odd: readonly unknown[] = [
  undefined,
  null,
  -1,
  0.5,
  Number.NaN,
  Infinity,
  2 ** 31,
  2 ** 53,
  '0',
  {},
  [],
  new Float32Array(3),
  () => 0,
  1n,
  Symbol('x'),
];

describe.skipIf(!there)('the addon', () => {
  const addon = loadAddon() as Addon;
  const any = addon as unknown as Record<string, (...given: unknown[]) => unknown>;

  it('runs batches of cells that it was given, as long as their engine lives', () => {
    const memory = new Uint8Array(new SharedArrayBuffer(4096));
    const engine = addon.create(memory, 1);
    expect(() => addon.submitter(engine, new Float64Array(4))).toThrow('SharedArrayBuffer');
    const cells = new Float64Array(new SharedArrayBuffer(40));
    const run = addon.submitter(engine, cells);
    cells.set([4, 2, 64, 8, 0]);
    new Int32Array(cells.buffer)[8] = 0x01020304;
    expect(run()).toBeUndefined();
    expect([...memory.subarray(63, 73)]).toEqual([0, 4, 3, 2, 1, 4, 3, 2, 1, 0]);
    for (const length of [5, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 63, 1e300]) {
      cells[0] = length;
      expect(() => run()).toThrow('bad number of cells');
    }
    cells[0] = 4;
    cells[1] = 7;
    expect(() => run()).toThrow('unknown');
    // Cells of a later call take their place, also for functions made before.
    const short = addon.submitter(engine, new Float64Array(new SharedArrayBuffer(8)));
    expect(run()).toBeUndefined();
    expect(short()).toBeUndefined();
    expect(() => addon.submitter(engine, new Float64Array(new SharedArrayBuffer(0)))).toThrow('cells');
    addon.dispose(engine);
    expect(() => run()).toThrow('bad engine');
  });

  it('refuses what is no engine, code, memory or command', () => {
    const engine = addon.create(new Uint8Array(new SharedArrayBuffer(4096)), 1);
    const code = addon.compile(engine, nothing, 1, 1, 1);
    const good: Readonly<Record<string, readonly unknown[]>> = {
      create: [new Uint8Array(new SharedArrayBuffer(64)), 1],
      resize: [engine, new Uint8Array(new SharedArrayBuffer(64))],
      compile: [engine, nothing, 1, 1, 1],
      release: [engine, code + 1],
      submit: [engine, new Float64Array(8), 8],
      submitter: [engine, new Float64Array(new SharedArrayBuffer(64))],
    };
    for (const [name, args] of Object.entries(good)) {
      for (let i = 0; i < args.length; i++) {
        for (const value of odd) {
          // A group more or less is no harm.
          if (name === 'compile' && i === 4 && typeof value === 'number' && value > 0) continue;
          if (name === 'submit' && i === 2) continue;
          const given = args.map((a, k) => (k === i ? value : a));
          expect(() => any[name]!(...given), `${name} ${i} ${String(value)}`).toThrow();
        }
      }
      expect(() => any[name]!(), name).toThrow();
    }
    addon.dispose(engine);
    expect(() => addon.submit(engine, new Float64Array(1), 0)).toThrow('bad engine');
    expect(() => addon.dispose(engine)).not.toThrow();
  });

  it('refuses commands that are cut short or reach outside', () => {
    const engine = addon.create(new Uint8Array(new SharedArrayBuffer(4096)), 1);
    const code = addon.compile(engine, nothing, 1, 1, 1);
    const run = (...cells: number[]): number | undefined =>
      addon.submit(engine, Float64Array.from(cells), cells.length);
    expect(run(0, code, 0, 0, 64, 5)).toBeUndefined();
    expect(() => run(0, code, 0, 0, 64)).toThrow('cut short');
    expect(() => run(0, code, 0, 4000, 97, 5)).toThrow('outside');
    expect(() => run(0, code, 0, -8, 8, 5)).toThrow('outside');
    expect(() => run(0, code, 0, Number.NaN, 8, 5)).toThrow('outside');
    expect(() => run(0, code + 1, 0, 0, 64, 5)).toThrow('no such code');
    expect(() => run(0, Number.NaN, 0, 0, 64, 5)).toThrow('no such code');
    expect(() => run(0, code, Number.NaN, 0, 64, 5)).toThrow('no such code');
    expect(() => run(1, 0, 4090, 8)).toThrow('outside');
    expect(() => run(2, 4090, 8, 0)).toThrow('outside');
    expect(() => run(7)).toThrow('unknown');
    expect(() => run(Number.NaN)).toThrow('unknown');
    addon.release(engine, code);
    expect(() => run(0, code, 0, 0, 64, 5)).toThrow('no such code');
    expect(() => addon.release(engine, code)).toThrow('no such code');
    addon.dispose(engine);
  });

  it('takes no memory that can be taken away from it', () => {
    expect(() => addon.create(new Uint8Array(64), 1)).toThrow('must be a Uint8Array on a SharedArrayBuffer');
    expect(() => addon.create(new Uint8Array(new WebAssembly.Memory({ initial: 1 }).buffer), 1)).toThrow('Shared');
  });

  it('refuses commands and code whose memory is gone, shrunk or changed meanwhile', () => {
    const engine = addon.create(new Uint8Array(new SharedArrayBuffer(4096)), 1);
    const cells = Float64Array.of(2, 0, 64, 0);
    const code = new Uint8Array(nothing);
    for (const { buffer } of [cells, code]) structuredClone(buffer, { transfer: [buffer] });
    expect(() => addon.submit(engine, cells, 4)).toThrow('bad number of cells');
    expect(addon.submit(engine, cells, 0)).toBeUndefined();
    expect(() => addon.compile(engine, code, 0, 0, 1)).toThrow('bad engine or code');
    const Resizable = ArrayBuffer as unknown as new (
      bytes: number,
      options: object,
    ) => ArrayBuffer & { resize(n: number): void };
    const resizable = new Resizable(64, { maxByteLength: 4096 });
    const [fixed, following] = [new Float64Array(resizable, 0, 8), new Float64Array(resizable)];
    resizable.resize(16);
    expect(() => addon.submit(engine, fixed, 8)).toThrow('bad number of cells');
    expect(() => addon.submit(engine, following, 8)).toThrow('bad number of cells');
    addon.dispose(engine);
  });

  it('refuses random cells and numbers, and works on', () => {
    const engine = addon.create(new Uint8Array(new SharedArrayBuffer(65536)), 2);
    const code = addon.compile(engine, nothing, 1, 0, 1000);
    let state = 1;
    const draw = (n: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * n);
    };
    const strange = [
      0,
      1,
      2,
      3,
      -1,
      0.5,
      8,
      64,
      65536,
      65535,
      2 ** 31,
      2 ** 32,
      2 ** 53,
      1e300,
      -0,
      NaN,
      Infinity,
      code,
    ];
    let refused = 0;
    for (let i = 0; i < 20_000; i++) {
      const cells = Float64Array.from({ length: 1 + draw(12) }, () => strange[draw(strange.length)]!);
      try {
        addon.submit(engine, cells, draw(4) === 0 ? strange[draw(strange.length)]! : cells.length);
      } catch {
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(10_000);
    expect(addon.submit(engine, Float64Array.of(0, code, 10, 0, 64), 5)).toBeUndefined();
    addon.dispose(engine);
  });

  it('does not run twice at once, nor what another thread of Node has', () => {
    // A getter or a valueOf of the arguments is never called: nothing of JavaScript runs in the middle.
    const engine = addon.create(new Uint8Array(new SharedArrayBuffer(4096)), 1);
    let called = 0;
    const length = { valueOf: () => ++called };
    expect(() => any.submit!(engine, Float64Array.of(2, 0, 64, 0), length)).toThrow('bad number of cells');
    expect(() => any.submit!({ valueOf: () => ++called }, Float64Array.of(2, 0, 64, 0), 4)).toThrow('bad engine');
    expect(called).toBe(0);
    addon.dispose(engine);
  });

  it('keeps to its own memory when that grows', () => {
    const Growing = SharedArrayBuffer as unknown as new (bytes: number, options: object) => SharedArrayBuffer;
    const buffer = new Growing(4096, { maxByteLength: 1 << 20 });
    const engine = addon.create(new Uint8Array(buffer), 1);
    expect(() => addon.submit(engine, Float64Array.of(2, 8192, 64, 0), 4)).toThrow('outside');
    (buffer as unknown as { grow(bytes: number): void }).grow(65536);
    addon.resize(engine, new Uint8Array(buffer));
    expect(addon.submit(engine, Float64Array.of(2, 8192, 64, 0), 4)).toBeUndefined();
    expect(() => addon.resize(engine, new Uint8Array(new SharedArrayBuffer(64)))).toThrow('another one');
    expect(() => addon.resize(engine, new Uint8Array(buffer, 64))).toThrow('another one');
    addon.dispose(engine);
  });
});

const script = `
  const addon = require(${JSON.stringify(fileURLToPath(new URL('../native/build/native.node', import.meta.url)))});
  const make = () => {
    const engine = addon.create(new Uint8Array(new SharedArrayBuffer(4096)), 3);
    return [engine, addon.compile(engine, Uint8Array.of(0x31, 0xc0, 0xc3), 0, 0, 1000)];
  };
  const [engine, code] = make();
  const cells = Float64Array.of(0, code, 10);
  const run = (times) => { for (let i = 0; i < times; i++) addon.submit(engine, cells, 3); };
`;

describe.skipIf(!there)('threads', () => {
  it('end with the worker of Node that has them, in the middle of work too', async () => {
    const workers = Array.from(
      { length: 24 },
      () =>
        new Worker(`${script} require('node:worker_threads').parentPort.postMessage(1); for (;;) run(1000);`, {
          eval: true,
        }),
    );
    await Promise.all(workers.map((w) => new Promise((resolve) => w.once('message', resolve))));
    expect(await Promise.all(workers.map((w) => w.terminate()))).toEqual(workers.map(() => 1));
  });

  it('do not keep a process from ending, nor crash it', () => {
    const end = (text: string): number | null =>
      spawnSync(process.execPath, ['-e', `${script} ${text}`], { stdio: 'inherit' }).status;
    expect(end('run(1000);')).toBe(0);
    expect(end('run(1000); process.exit(3);')).toBe(3);
    expect(end('for (let i = 0; i < 40; i++) { const [e] = make(); if (i % 2) addon.dispose(e); } run(10);')).toBe(0);
  });
});
