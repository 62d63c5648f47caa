/** Results under every policy are those of one engine, whatever moves; and what each policy does. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFaultyEngine, createNullEngine, createReferenceEngine } from '@polygrad/testing';
import type { IEngine } from '../engine/engine.ts';
import { CompileError, OutOfMemoryError, UnsupportedError } from '../engine/errors.ts';
import { registerBackend, setEngine } from '../engine/registry.ts';
import {
  type DType,
  ExecutionContext,
  explainPlacement,
  flush,
  grads,
  idle,
  memory,
  ones,
  type PlacementPolicy,
  rand,
  scope,
  stats,
  type Tensor,
  tensor,
} from '../index.ts';
import { policies } from './decide.ts';
import { type EngineCosts, operationFamilies } from './costs.ts';
import { AdaptiveThresholds } from './thresholds.ts';
import { mulberry32 } from './fixtures/random.ts';

const key = Symbol.for('polygrad.registry');
const globals = globalThis as { [key]?: unknown };
let before: unknown;
let cpu: IEngine;
beforeEach(async () => {
  before = globals[key];
  globals[key] = undefined;
  cpu = createReferenceEngine({ name: 'cpu' });
  registerBackend({
    name: 'cpu',
    probe: async () => ({ score: 1, reason: 'for tests', device: 'none' }),
    create: () => cpu,
  });
  await setEngine(cpu);
});
afterEach(() => {
  globals[key] = before;
});

/** Thresholds under which small tests move work to and fro. */
const low = { elementwise: 8, reduction: 6, product: 10, convolution: 10, indexing: 6, sort: 6, scan: 6 };

/** Runs a random program and returns all it reads. */
async function program(seed: number, move: (t: Tensor, next: (n: number) => number) => Tensor): Promise<string[]> {
  const next = mulberry32(seed);
  const live: Tensor[] = [];
  const seen: string[] = [];
  const dtypes: DType[] = ['float32', 'float32', 'int32', 'float64'];
  for (let i = 0; i < 3; i++)
    live.push(
      tensor(
        Array.from({ length: 6 + 6 * i }, (_, j) => ((j * 7) % 11) - 3),
        { shape: [2 + 2 * i, 3], dtype: dtypes[i]! },
      ),
    );
  const pick = (): Tensor => live[next(live.length)]!;
  for (let at = 0; at < 40; at++) {
    const choice = next(12);
    const [a, b] = [pick(), pick()];
    const made = scope(() => {
      const x = a.cast('float32').mul(0.25);
      if (choice === 0) return x.exp().sum({ axis: 0, keepDims: true }).add(x);
      if (choice === 1)
        return x
          .matmul(b.cast('float32').transpose())
          .narrow(1, 0, 2)
          .matmul(ones([2, 3]));
      if (choice === 2) return x.sort(1).remainder(7);
      if (choice === 3) return x.cumSum(0).mul(0.5);
      if (choice === 4) return x.softmax(1).sub(a.cast('float32').max());
      if (choice === 5) return a.cast(dtypes[next(4)]!).add(1);
      if (choice === 6) return move(x, next).add(1);
      if (choice === 7) return x.flip([0]).take(tensor([0, 1, 0], { dtype: 'int32' }), 0);
      return null;
    });
    if (made !== null) live.push(made);
    else if (choice === 8) flush();
    else if (choice === 9) seen.push(String(Array.from((await a.data()) as Float32Array)));
    else if (choice === 10) await Promise.resolve();
    while (live.length > 6) live.splice(next(live.length), 1)[0]!.dispose();
  }
  for (const t of live) seen.push(String(Array.from((await t.data()) as Float32Array)));
  for (const t of live) t.dispose();
  return seen;
}

describe.each(policies)('policy %s', (policy) => {
  it.each([1, 2, 3, 4, 5, 6])('has the bits of one engine: seed %i', async (seed) => {
    const expected = await program(seed, (t, next) => t.mul(next(2) < 2 ? 1 : 0));
    const device = createReferenceEngine({
      name: 'gpu',
      synchronous: seed % 2 === 0,
      ...(seed > 3 ? { dtypes: few } : {}),
    });
    const context = new ExecutionContext({ policy, device, thresholds: low });
    const moved = await context.run(() => program(seed, (t, next) => t.to(next(2) === 0 ? device : cpu).mul(1)));
    expect(moved).toEqual(expected);
    flush();
    await idle();
    expect([memory(device).numBuffers, memory(cpu).numBuffers]).toEqual([0, 0]);
  });

  it('has the gradients of one engine', async () => {
    const device = createReferenceEngine({ name: 'gpu' });
    const step = async (): Promise<string[]> => {
      const [x, w, v] = [rand([4, 6], { key: 1 }), rand([6, 8], { key: 2 }), rand([8, 2], { key: 3 })];
      const found = grads((a: Tensor, b: Tensor) => x.matmul(a).tanh().matmul(b).softmax(1).log().sum())(
        w,
        v,
      ) as Tensor[];
      const values = await Promise.all(found.map(async (t) => String(Array.from((await t.data()) as Float32Array))));
      for (const t of [x, w, v, ...found]) t.dispose();
      return values;
    };
    const expected = await step();
    expect(await new ExecutionContext({ policy, device, thresholds: low }).run(step)).toEqual(expected);
  });
});

const few: readonly DType[] = ['float32', 'int32', 'uint32', 'bool'];

describe('what a policy does', () => {
  it('forceGpu computes all that the device can, forceCpu nothing', async () => {
    for (const [policy, used] of [
      ['forceGpu', true],
      ['forceCpu', false],
    ] as const) {
      const device = createReferenceEngine({ name: 'gpu' });
      await new ExecutionContext({ policy, device }).run(async () => {
        using x = ones([4]);
        using y = x.add(1);
        expect(y.device).toBe(used ? 'gpu' : 'cpu');
        expect(await y.array()).toEqual([2, 2, 2, 2]);
      });
      expect(stats(device).kernels > 0).toBe(used);
    }
  });

  it('automatic leaves what is below its threshold to the CPU engine', async () => {
    const device = createReferenceEngine({ name: 'gpu' });
    const thresholds = costly({ cpu: 1e-3, device: 1e-4, launch: 0.01, byte: 0 });
    thresholds.set('elementwise', 100);
    await new ExecutionContext({ device, thresholds }).run(async () => {
      for (const [size, name] of [
        [99, 'cpu'],
        [100, 'gpu'],
      ] as const) {
        using x = ones([size]);
        flush();
        using y = x.mul(3);
        expect(y.device).toBe(name);
        flush();
        expect(y.device).toBe(name);
      }
    });
  });

  it('automatic moves data that stays when that has paid', async () => {
    const device = createReferenceEngine({ name: 'gpu' });
    // A run gains 0.9 ms; bringing 4000 bytes costs 4 ms.
    const thresholds = costly({ cpu: 1e-3, device: 1e-4, launch: 0, byte: 1e-3 });
    thresholds.set('elementwise', 1);
    const places: string[] = [];
    await new ExecutionContext({ device, thresholds }).run(async () => {
      using x = tensor(new Float32Array(1000).fill(2));
      for (let i = 0; i < 9; i++) {
        using y = x.mul(3);
        flush();
        places.push(y.device);
      }
    });
    expect(places).toEqual([...new Array(5).fill('cpu'), ...new Array(4).fill('gpu')]);
  });

  it('automatic does not move what is new each time', async () => {
    const device = createReferenceEngine({ name: 'gpu' });
    const thresholds = costly({ cpu: 1e-3, device: 1e-4, launch: 0, byte: 1e-3 });
    thresholds.set('elementwise', 1);
    const places: string[] = [];
    await new ExecutionContext({ device, thresholds }).run(async () => {
      for (let i = 0; i < 30; i++) {
        using x = tensor(new Float32Array(1000).fill(i));
        using y = x.mul(3);
        flush();
        places.push(y.device);
      }
    });
    expect(new Set(places)).toEqual(new Set(['cpu']));
  });

  it('automatic keeps work apart that looks alike and has its data on different engines', async () => {
    const device = createReferenceEngine({ name: 'gpu' });
    const thresholds = costly({ cpu: 1e-3, device: 1e-4, launch: 0, byte: 1e-3 });
    thresholds.set('elementwise', 1);
    const places: string[] = [];
    const sums: number[] = [];
    await new ExecutionContext({ device, thresholds }).run(async () => {
      using x = tensor(new Float32Array(1000).fill(2));
      const triple = async (of: Tensor): Promise<void> => {
        using y = of.mul(3);
        flush();
        places.push(y.device);
        sums.push(((await y.array()) as number[]).reduce((a, b) => a + b, 0));
      };
      for (let i = 0; i < 9; i++) await triple(x);
      // It has moved by now. Where the one went is where the other one is looked for.
      for (let i = 0; i < 6; i++) {
        using fresh = tensor(new Float32Array(1000).fill(i));
        await triple(fresh);
        await triple(x);
      }
    });
    expect(places.slice(9)).toEqual(new Array(6).fill(['cpu', 'gpu']).flat());
    expect(sums.slice(9)).toEqual(Array.from({ length: 6 }, (_, i) => [3000 * i, 6000]).flat());
  });

  it('automatic leaves work of the same costs where it is', async () => {
    for (const [part, name] of [
      [0.98, 'cpu'],
      [0.9, 'gpu'],
    ] as const) {
      const device = createReferenceEngine({ name: 'gpu' });
      const thresholds = costly({ cpu: 1e-3, device: part * 1e-3, launch: 0, byte: 0 });
      thresholds.set('elementwise', 1);
      await new ExecutionContext({ device, thresholds }).run(async () => {
        using x = tensor(new Float32Array(1000).fill(2));
        for (let i = 0; i < 9; i++) {
          using y = x.mul(3);
          flush();
          expect(y.device).toBe(name);
        }
      });
    }
  });

  it('minimizeTransfers goes where the bytes are', async () => {
    const device = createReferenceEngine({ name: 'gpu' });
    await new ExecutionContext({ policy: 'minimizeTransfers', device }).run(async () => {
      using big = ones([100]).to(device);
      flush();
      using small = ones([1]);
      using y = small.add(big.detach());
      expect(y.device).toBe('gpu');
      expect(await y.data()).toEqual(new Float32Array(100).fill(2));
      using z = small.add(1);
      expect(z.device).toBe('cpu');
      await z.data();
    });
  });

  it('costBased divides a part where that is cheaper, with the same values', async () => {
    const device = createReferenceEngine({ name: 'gpu' });
    const thresholds = costly({ cpu: 1e-3, device: 1e-5, launch: 0.05, byte: 1e-6 });
    await new ExecutionContext({ policy: 'costBased', device, thresholds }).run(async () => {
      using x = rand([64, 64], { key: 1 });
      flush();
      using y = scope(() => x.matmul(x).sum(0).narrow(0, 0, 2).cumSum(0));
      const report = explainPlacement(() => x.matmul(x).sum(0).narrow(0, 0, 2).cumSum(0));
      expect(report.parts[0]!.engine).toContain('gpu');
      const m = (await x.array()) as number[][];
      const columns = [0, 1].map((j) => m.reduce((s, row) => s + row.reduce((t, v, k) => t + v * m[k]![j]!, 0), 0));
      const found = (await y.data()) as Float32Array;
      expect(found[0]).toBeCloseTo(columns[0]!, 2);
      expect(found[1]).toBeCloseTo(columns[0]! + columns[1]!, 2);
    });
    expect(stats(device).kernels).toBeGreaterThan(0);
  });
});

/** Thresholds with costs that are lines: milliseconds for an element on either engine, for a launch there, and for a byte between them. */
function costly(c: { cpu: number; device: number; launch: number; byte: number }): AdaptiveThresholds {
  const line = (launch: number, each: number): [number, number][] => [
    [1, launch + each],
    [1e7, launch + each * 1e7],
  ];
  const families = (launch: number, each: number): EngineCosts['families'] =>
    Object.fromEntries(operationFamilies.map((f) => [f, line(launch, each)])) as unknown as EngineCosts['families'];
  const free = { latency: 0, perByte: 0 };
  const bus = { latency: 0, perByte: c.byte };
  return new AdaptiveThresholds(
    {},
    {
      cpu: { families: families(0, c.cpu), fused: c.cpu, upload: free, download: free },
      device: { families: families(c.launch, c.device), fused: c.device, upload: bus, download: bus },
    },
  );
}

describe('what a device cannot do', () => {
  /** An engine that refuses some kernels. */
  function picky(refuses: (text: string) => boolean): IEngine {
    const engine = createReferenceEngine({ name: 'gpu' });
    const { compile } = engine;
    return Object.assign(engine, {
      compile: (programs: Parameters<typeof compile>[0]) => {
        const bad = programs.find((program) => program.body.some(({ op }) => refuses(op)));
        if (bad !== undefined) throw new CompileError('gpu', bad.name, 'a test refuses it', 'no text');
        return compile(programs);
      },
    });
  }

  it('goes to the CPU engine and back, with a line for each reason', async () => {
    const device = picky((op) => op === 'SQRT');
    const lines: string[] = [];
    const context = new ExecutionContext({ policy: 'forceGpu', device, logger: (text) => lines.push(text) });
    await context.run(async () => {
      using x = tensor([1, 4, 9]);
      for (let i = 0; i < 3; i++) {
        using y = scope(() =>
          x
            .add(0)
            .matmul(ones([3]))
            .add(x.mul(2).sqrt().square())
            .mul(10),
        );
        const expected = [1, 4, 9].map((v) => (14 + 2 * v) * 10);
        for (const [j, v] of ((await y.array()) as number[]).entries()) expect(v).toBeCloseTo(expected[j]!, 3);
        expect(y.device).toBe('gpu');
      }
      using wide = x.cast('float64').add(0.5);
      expect(await wide.array()).toEqual([1.5, 4.5, 9.5]);
    });
    expect(lines.length).toBe(1);
    expect(lines[0]).toMatch(
      /^\[placement\] the cpu engine computes 'sqrt' float32 \[3\]: engine 'gpu' cannot, .*a test refuses it/,
    );
  });

  it('dtypes: one line each, or an error', async () => {
    const lines: string[] = [];
    const device = createReferenceEngine({ name: 'gpu', dtypes: few });
    await new ExecutionContext({ policy: 'forceGpu', device, logger: (text) => lines.push(text) }).run(async () => {
      using x = ones([3]);
      for (let i = 0; i < 3; i++) {
        using y = x.cast('float64').add(i).cast('float32');
        expect(await y.array()).toEqual([1 + i, 1 + i, 1 + i]);
      }
    });
    expect(lines).toEqual([expect.stringMatching(/engine 'gpu' cannot, it does not hold float64/)]);
    await new ExecutionContext({ policy: 'forceGpu', device, strict: true }).run(async () => {
      using x = ones([3]);
      using y = x.cast('float64');
      await expect(y.data()).rejects.toThrow(UnsupportedError);
      await expect(y.data()).rejects.toThrow(/does not hold float64; the context is strict/);
    });
  });

  it('sizes that it has no memory for', async () => {
    const device = createReferenceEngine({ name: 'gpu' });
    const { alloc } = device;
    Object.assign(device, {
      alloc: (bytes: number) => {
        if (bytes > 4096) throw new OutOfMemoryError('gpu', { requested: bytes, live: 0, reserved: 0, limit: 4096 });
        return alloc(bytes);
      },
    });
    const lines: string[] = [];
    await new ExecutionContext({ policy: 'forceGpu', device, logger: (text) => lines.push(text) }).run(async () => {
      using x = ones([100]);
      using big = scope(() => x.reshape([100, 1]).mul(x).add(1).contiguous());
      using total = big.sum();
      expect(await total.item()).toBe(20000);
      expect(big.device).toBe('cpu');
    });
    expect(lines.length).toBe(1);
  });

  it('a loss while work is placed: computed again on what is left, or told', async () => {
    for (const policy of [
      'automatic',
      'costBased',
      'minimizeTransfers',
      'forceGpu',
    ] as const satisfies PlacementPolicy[]) {
      for (const member of ['alloc', 'upload', 'submit', 'download'] as const)
        for (let at = 1; at < 4; at++) {
          globals[key] = undefined;
          const host = createReferenceEngine({ name: 'cpu' });
          registerBackend({
            name: 'cpu',
            probe: async () => ({ score: 1, reason: '', device: '' }),
            create: () => host,
          });
          await setEngine(host);
          const device = createFaultyEngine(createReferenceEngine({ name: 'gpu' }));
          const context = new ExecutionContext({ policy, device, thresholds: low });
          await context.run(async () => {
            using x = tensor([1, 2, 3, 4, 5, 6, 7, 8]);
            flush();
            device.arm({ member, at, kind: 'lost' });
            for (let i = 0; i < 3; i++) {
              using y = scope(() =>
                x
                  .to(i === 1 ? device : host)
                  .mul(i + 1)
                  .sum(),
              );
              const value = await y.item().catch((error: Error) => error);
              if (typeof value === 'number') expect(value).toBe(36 * (i + 1));
              else expect((value as { code?: string }).code).toBe('DEVICE_LOST');
            }
            if (policy !== 'forceGpu') expect(await x.array()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
          });
        }
    }
  });
});

it('contexts nest, and end', async () => {
  const [a, b] = [createReferenceEngine({ name: 'a' }), createNullEngine()];
  const outer = new ExecutionContext({ policy: 'forceGpu', device: a });
  await outer.run(async () => {
    await new ExecutionContext({ policy: 'forceGpu', device: b }).run(() => {
      using x = ones([2]);
      expect(x.device).toBe('null');
    });
    using x = ones([2]);
    expect(x.device).toBe('a');
    await expect(outer.activate()).rejects.toThrow(/is active/);
  });
  using x = ones([2]);
  expect(x.device).toBe('cpu');
  expect(outer.isActive).toBe(false);
  await expect(new ExecutionContext({ policy: 'forceGpu' }).activate()).rejects.toThrow(
    /current engine is the cpu engine/,
  );
  expect(() => new ExecutionContext({ policy: 'fast' as never })).toThrow(/policy/);
  expect(() => explainPlacement(() => ones([2]))).toThrow(/no ExecutionContext is active/);
});
