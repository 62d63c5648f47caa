/** The tuner on an engine with a clock of its own: chooses the fastest, keeps it, finds it again, and ignores what is damaged. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Command, EngineTuning, IEngine, TuningStore } from '../engine/engine.ts';
import { CompileError, OutOfMemoryError } from '../engine/errors.ts';
import { getEngine, setEngine } from '../engine/registry.ts';
import { type Tensor, tensor } from '../index.ts';
import type { Program } from '@polygrad/compiler/ir/ir';
import { tileOf, tilesVersion } from '@polygrad/compiler/contraction/simt/problem';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { choicesOf, storeKey } from './choices.ts';
import { memoryStore } from './store.ts';
import { tune } from './tune.ts';

/** Numbers in memory. */
const numbers = (shape: readonly [number, number]): Tensor =>
  tensor(
    Float32Array.from({ length: shape[0] * shape[1] }, (_, i) => (i % 7) - 3),
    { shape },
  );

interface Clocked {
  readonly engine: IEngine;
  now(): number;
  /** Names of the kernels run since the last call. */
  grids(): string[];
}

/** An engine without a device, on which a dispatch takes as long as `time` says. */
function clocked(time: (threads: number) => number, tuning?: EngineTuning): Clocked {
  const base = createNullEngine({ simt: true, maxGroup: 256, sharedBytes: 16384, nativeOps: new Set(['MULADD']) });
  let clock = 0;
  let seen: string[] = [];
  const engine: IEngine = {
    ...base,
    ...(tuning === undefined ? {} : { tuning: { ...tuning, now: () => clock } }),
    submit: (commands: readonly Command[]) => {
      base.submit(commands);
      for (const command of commands) {
        if (command.kind !== 'dispatch') continue;
        const { grid, group } = command.kernel.program;
        clock += time(group[0]);
        seen.push(`${grid[0] * grid[1]}x${group[0]}`);
      }
    },
  };
  return {
    engine,
    now: () => clock,
    grids: () => {
      const now = seen;
      seen = [];
      return now;
    },
  };
}

const product = { m: 256, n: 256, k: 256 };
const threadsOf = (tile: string): number => tileOf(tile)?.threads.reduce((n, x) => n * x, 1) as number;

afterEach(async () => {
  await setEngine('cpu').catch(() => {});
});

describe('tune', () => {
  it('takes the fastest candidate and says what was measured', async () => {
    for (const fast of [64, 256]) {
      const { engine, now } = clocked((threads) => (threads === fast ? 1 : 3));
      const results = await tune(engine, { products: [product], now });
      expect(results.length).toBe(1);
      const [{ key, tile, measured }] = results as [(typeof results)[number]];
      expect(key).toBe('float32 256x256x256x1 k.c 1');
      expect(threadsOf(tile)).toBe(fast);
      expect(measured.length).toBeGreaterThan(5);
      expect(measured[0]).toMatchObject({ tile, milliseconds: 1 });
      expect(await tune(engine, { products: [product], now })).toEqual([]);
    }
  });

  it('keeps the default where nothing is clearly faster, and stops at its budget', async () => {
    const { engine, now } = clocked(() => 1);
    const [even] = await tune(engine, { products: [product], now });
    expect(even?.tile).toBe('group:8x8x1:4x4x1:16');
    const slow = clocked(() => 100);
    const [first] = await tune(slow.engine, { products: [product], now: slow.now, budget: 150 });
    expect(first?.measured.length).toBe(1);
  });

  it('tunes what was run, and lowers it with the new tile from then on', async () => {
    const { engine, now, grids } = clocked((threads) => (threads === 256 ? 1 : 3));
    await setEngine(engine);
    const [a, b] = [numbers([256, 256]), numbers([256, 256])];
    const run = async (): Promise<string[]> => {
      grids();
      const c = a.matmul(b);
      await c.data().catch(() => {});
      c.dispose();
      return grids();
    };
    expect((await run()).at(-1)).toBe('64x64');
    const results = await tune(engine, { now });
    expect(results.map((r) => r.key)).toEqual(['float32 256x256x256x1 k.c 1']);
    expect((await run()).at(-1)).toMatch(/x256$/);
  });

  it('keeps results and finds them again, for the same device only', async () => {
    const store = memoryStore();
    const first = clocked((threads) => (threads === 256 ? 1 : 3));
    const [found] = await tune(first.engine, { products: [product], store, now: first.now });
    const again = clocked((threads) => (threads === 256 ? 1 : 3));
    expect(await tune(again.engine, { products: [product], store, now: again.now })).toEqual([]);
    expect(choicesOf(again.engine).find(found?.key as string)).toBe(found?.tile);
    expect(again.grids()).toEqual([]);
    const other = { ...clocked(() => 1).engine, device: 'another' };
    expect((await tune(other, { products: [product], store, now: () => 0 })).length).toBe(1);
    const anew = await tune(again.engine, { products: [product], store, now: again.now, again: true });
    expect(anew.length).toBe(1);
  });

  it('ignores damaged entries and stores that fail', async () => {
    const { engine } = clocked(() => 1);
    const key = 'float32 256x256x256x1 k.c 1';
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '{"version":0,"tiles":{}}',
      '{"version":1,"tiles":3}',
      JSON.stringify({ version: tilesVersion, tiles: { [key]: 'group:9999999x1x1:1x1x1:1' } }),
      JSON.stringify({ version: tilesVersion, tiles: { [key]: 7 } }),
    ]) {
      const store = memoryStore();
      await store.save(storeKey(engine), text);
      const fresh = clocked(() => 1);
      expect((await tune(fresh.engine, { products: [product], store, now: fresh.now })).length, text).toBe(1);
    }
    // A tile that fits no longer gives way to the default when the kernel is lowered.
    choicesOf(engine).set('float32 12x12x48x1 k.c 1', 'group:32x32x1:1x1x1:16');
    await setEngine(engine);
    const c = numbers([12, 48]).matmul(numbers([48, 12]));
    await c.data().catch(() => {});
    c.dispose();
  });

  it('passes over tiles that the device cannot compile, however it says so, or has no memory for', async () => {
    const fastest = 256;
    const broken = (program: Program): boolean => program.group[0] === fastest;
    const refusal = new CompileError('null', 'gemm', 'the driver does not like it', '');
    for (const say of ['at once', 'when it runs', 'later', 'no memory'] as const) {
      const { engine: base, now } = clocked((threads) => (threads === fastest ? 0 : 3));
      let held = 0;
      const engine: IEngine = {
        ...base,
        compile: (programs) => {
          if (say === 'at once' && programs.some(broken)) throw refusal;
          if (say === 'no memory' && programs.some(broken))
            throw new OutOfMemoryError('null', { requested: 1, live: 2, reserved: 3, limit: 4 });
          held += programs.length;
          return programs.map((program) => ({ program, failure: say === 'later' && broken(program) ? refusal : null }));
        },
        release: (kernels) => {
          held -= kernels.length;
        },
        submit: (commands) => {
          const bad = commands.some((c) => c.kind === 'dispatch' && broken(c.kernel.program));
          if (bad && say === 'when it runs') throw refusal;
          if (!bad) base.submit(commands);
        },
      };
      const [result] = await tune(engine, { products: [product], now });
      expect(threadsOf(result?.tile as string), say).not.toBe(fastest);
      expect(result?.measured.length, say).toBeGreaterThan(3);
      expect(result?.measured.map(({ tile }) => threadsOf(tile))).not.toContain(fastest);
      expect([held, engine.memory().buffers], say).toEqual([0, 0]);
    }
  });

  it('waits for the device to say that it has the memory, and sends nothing where it has not', async () => {
    const { engine: base, now } = clocked(() => 1);
    const asked: { refused: Error | null }[] = [];
    let sent = 0;
    let answered = true;
    const engine: IEngine = {
      ...base,
      alloc: (bytes) => {
        const buffer = Object.assign(base.alloc(bytes), { refused: null as Error | null });
        asked.push(buffer);
        answered = false;
        return buffer;
      },
      confirming: () =>
        answered
          ? null
          : Promise.resolve().then(() => {
              const figures = { requested: 1, live: 2, reserved: 3, limit: 4 };
              for (const buffer of asked.slice(2)) buffer.refused = new OutOfMemoryError('null', figures);
              answered = true;
            }),
      submit: () => {
        expect(answered).toBe(true);
        sent++;
      },
    };
    await expect(tune(engine, { products: [product], now })).rejects.toThrow(OutOfMemoryError);
    expect([asked.length, sent, engine.memory().buffers]).toEqual([3, 0, 0]);
  });

  it('refuses products that are none', async () => {
    const { engine } = clocked(() => 1);
    await expect(tune(engine, { products: [{ m: 0, n: 4, k: 4 }] })).rejects.toThrow(
      /m must be an integer of at least 1/,
    );
    await expect(tune(engine, { products: [{ m: 4, n: 4, k: 1.5 }] })).rejects.toThrow(/k must be/);
    await expect(tune(engine, { products: [{ m: 4, n: 4, k: 4, dtype: 'float16' }] })).rejects.toThrow(/float16/);
    expect(await tune(createReferenceEngine(), { products: [product] })).toEqual([]);
  });

  it('runs the real candidates on the interpreter without harm to the next result', async () => {
    const engine = createReferenceEngine({ simt: true });
    await setEngine(engine);
    const make = () =>
      numbers([24, 32])

        .matmul(numbers([32, 20]))
        .data();
    const before = await make();
    let clock = 0;
    const [result] = await tune(engine, { budget: 8000, now: () => (clock += 1000) });
    expect(result?.measured.length).toBeGreaterThan(1);
    expect(await make()).toEqual(before);
    expect(engine.memory().bytes).toBeLessThan(100_000);
  });
});

describe('tuning by itself', () => {
  const waitFor = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  const use = async (engine: IEngine): Promise<void> => {
    await setEngine(engine);
    const c = numbers([256, 256]).matmul(numbers([256, 256]));
    await c.data().catch(() => {});
    c.dispose();
  };
  const key = 'float32 256x256x256x1 k.c 1';

  it('measures a new class soon after it was run, and keeps it', async () => {
    const store = memoryStore();
    const { engine } = clocked((threads) => (threads === 256 ? 1 : 3), { store, automatic: true });
    await use(engine);
    await waitFor(() => choicesOf(engine).find(key) !== undefined);
    expect(threadsOf(choicesOf(engine).find(key) as string)).toBe(256);
    let text: string | null = null;
    await waitFor(() => {
      void store.load(storeKey(engine)).then((x) => {
        text = x;
      });
      return text !== null;
    });
    expect(text).toContain(key);
  });

  it('only loads where that is all that was asked', async () => {
    const store = memoryStore();
    const { engine } = clocked(() => 1, { store });
    await store.save(
      storeKey(engine),
      JSON.stringify({ version: tilesVersion, tiles: { [key]: 'group:16x16x1:4x4x1:16' } }),
    );
    await use(engine);
    await waitFor(() => choicesOf(engine).find(key) === 'group:16x16x1:4x4x1:16');
    const failing: TuningStore = {
      load: () => Promise.reject(new Error('no')),
      save: () => Promise.reject(new Error('no')),
    };
    const other = clocked(() => 1, { store: failing, automatic: true });
    await use(other.engine);
    expect(getEngine()).toBe(other.engine);
  });
});
