/** A few random programs of each kind, the same ones every time. `npm run fuzz` runs others, on other engines, for longer. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { setEngine, ShapeError, type Tensor, tensor } from '@polygrad/core';
import type { Binding, IEngine } from '@polygrad/core/engine';
import { type CallEntry, createReferenceEngine } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { check, leavingNothing } from './check.ts';
import type { NDArray } from '../oracle/ndarray.ts';
import { makeRandom } from '../oracle/random.ts';
import { evaluate, sensitivity } from '../programs/evaluate.ts';
import { families as operations } from '../operations/registry.ts';
import { Choices } from '../programs/choices.ts';
import { Pool } from '../programs/pool.ts';
import { fuzz, fuzzSizes } from './fixtures/run.ts';
import { checkGradients } from './gradients.ts';
import { printProgram, type Program, Ref } from '../programs/program.ts';
import { CallFuzz } from './refusals.ts';

describe('random programs', () => {
  it('give what their formulas say, on the CPU engine', async () => {
    await fuzz(await createCpuEngine({ threads: 1 }), { kind: 'programs', seed: 1, programs: 20 });
  });

  it('give the same at several sizes, whose plans they share', async () => {
    await fuzzSizes(await createCpuEngine({ threads: 1 }), { kind: 'sizes', seed: 1, programs: 12 });
  });

  it('give the bits of plans of their own where sizes share them from the first one on', async () => {
    for (const engine of [await createCpuEngine({ threads: 1 }), createReferenceEngine()]) {
      const { compared } = await fuzzSizes(engine, { kind: 'sizes', seed: 3, programs: 10, sharing: 'always' });
      expect(compared).toBeGreaterThan(30);
    }
  });

  it('have derivatives that agree', async () => {
    await fuzz(await createCpuEngine({ threads: 1 }), { kind: 'gradients', seed: 2, programs: 3 });
  });

  it('and calls of every function are refused in the words of the library, or have the values of the reference engine', async () => {
    const engine = await createCpuEngine({ threads: 1 });
    const { valid, compared } = await fuzz(engine, { kind: 'errors', seed: 3, programs: 25 });
    expect(valid).toBeGreaterThan(300);
    expect(compared).toBeGreaterThan(valid - 10);
  });
});

describe('the check itself', () => {
  const program = (result: number): Program => ({
    steps: [
      { kind: 'input', id: 0, dtype: 'float32', shape: [2], data: [1, 2] },
      {
        kind: 'call',
        id: 1,
        op: 'square',
        args: [new Ref(0)],
        dtype: 'float32',
        formula: () => ({ shape: [2], data: [1, result] }),
        noise: 'out',
        ordered: true,
      },
    ],
    outputs: [1],
    scoped: false,
  });

  it('finds a value that is not what the formula says, and prints the program', async () => {
    await setEngine(createReferenceEngine());
    await check(program(4), { exact: true });
    await expect(check(program(4.5), { exact: true })).rejects.toThrow(
      /t1: element 1 of \[2\] float32 is 4 where 4.5 is expected/,
    );
    expect(printProgram(program(4))).toContain('const t1 = pg.square(t0);\nt0.dispose();');
  });

  it('knows that terms may cancel: a test for 0 of what is rounding alone may go either way', () => {
    const of = (terms: readonly number[]): number[] => {
      const sum = (x: NDArray | undefined): NDArray => ({ shape: [], data: [x!.data.reduce((a, b) => a + b, 0)] });
      const nonZero = (x: NDArray | undefined): NDArray => ({ shape: [], data: [Number(x!.data[0] !== 0)] });
      const call = { kind: 'call', args: [new Ref(0)], ordered: true } as const;
      const summed: Program = {
        steps: [
          { kind: 'input', id: 0, dtype: 'float32', shape: [3], data: terms },
          { ...call, id: 1, op: 'sum', dtype: 'float32', formula: sum, noise: 'all' },
          { ...call, id: 2, op: 'any', args: [new Ref(1)], dtype: 'bool', formula: nonZero, noise: 'none' },
        ],
        outputs: [2],
        scoped: false,
      };
      return sensitivity(summed, evaluate(summed), makeRandom(1), 20).get(2)!.data as number[];
    };
    // 5.6e-17 in float64, 0 or 1e-8 in float32 as the order is.
    expect(of([0.1, 0.2, -0.3])).toEqual([1]);
    expect(of([0.1, 0.2, -0.2])).toEqual([0]);
  });

  it('knows that integers become floats before a function of floats', () => {
    const large = { id: 0, dtype: 'uint32', shape: [1], data: [4294967291] } as const;
    const unused = (): never => {
      throw new Error('another operand');
    };
    const { calls } = operations.elementwise.find(({ name }) => name === 'sin')!;
    const made = calls[0]!.make(new Pool(new Choices([]), [large], unused));
    expect(made?.formula(large).data).toEqual([Math.sin(2 ** 32)]);
  });

  it('finds a tensor that is left', async () => {
    await setEngine(createReferenceEngine());
    const left: Tensor[] = [];
    await expect(
      leavingNothing(async () => {
        left.push(tensor([1]));
      }),
    ).rejects.toThrow(/\d+ buffers and \d+ tensors where \d+ buffers and \d+ tensors were before/);
    for (const t of left) t.dispose();
  });

  it('runs once more where something older goes during a run', async () => {
    await setEngine(createReferenceEngine());
    const old = tensor([1]);
    let runs = 0;
    const run = async (): Promise<number> => {
      old.dispose();
      return ++runs;
    };
    expect(await leavingNothing(run)).toBe(2);
  });
});

describe('the check of calls', () => {
  it('finds an engine that computes something else', async () => {
    const { downloadSync: _, ...right } = createReferenceEngine();
    const download: typeof right.download = async (from, into) => {
      const bytes = await right.download(from, into);
      bytes[0] = (bytes[0] ?? 0) ^ 1;
      return bytes;
    };
    const calls = await CallFuzz.create({ ...right, download });
    const table = calls.table as Map<string, CallEntry>;
    for (const name of [...table.keys()]) if (name !== 'argMax') table.delete(name);
    await expect(calls.checkRightCalls()).rejects.toThrow(
      /differs from the reference engine: element 0 of int32 \[2\] is 0 where 1 is expected\npg\.argMax\(pg\.tensor\(/,
    );
  });

  it('finds what a call leaves behind, and what it refuses in other words', async () => {
    const calls = await CallFuzz.create(createReferenceEngine());
    const entry = calls.table.get('relu') as CallEntry;
    let left: Tensor[] = [];
    const check = async (f: CallEntry['f']): Promise<void> => {
      (calls.table as Map<string, CallEntry>).clear();
      (calls.table as Map<string, CallEntry>).set('relu', { ...entry, f });
      await calls.checkRightCalls();
    };
    await check(entry.f);
    await expect(
      check((x) => {
        left.push(tensor([1]));
        return entry.f(x);
      }),
    ).rejects.toThrow(/\d+ buffers and \d+ tensors where \d+ buffers and \d+ tensors were before/);
    for (const t of left) t.dispose();
    left = [];
    await expect(check(() => (undefined as unknown as Tensor).shape)).rejects.toThrow(/not an error of the library/);
    await expect(
      check(() => {
        throw new ShapeError('sum', 'shapes differ');
      }),
    ).rejects.toThrow(/refused in other words: ShapeError: \[sum\] shapes differ/);
  });
});

describe('the check of derivatives', () => {
  /** y = x * x, of which the formula may think something else. */
  const squares = (power: number): Program => ({
    steps: [
      { kind: 'input', id: 0, dtype: 'float64', shape: [2], data: [1, 2] },
      {
        kind: 'call',
        id: 1,
        op: 'square',
        args: [new Ref(0)],
        dtype: 'float64',
        formula: (x) => ({ shape: [2], data: (x as NDArray).data.map((v) => v ** power) }),
        noise: 'out',
        ordered: true,
      },
    ],
    outputs: [1],
    scoped: false,
  });

  /** The reference engine, whose read of this number is wrong. */
  function wrongOnce(number: number): IEngine {
    const engine = createReferenceEngine();
    let reads = 0;
    const read = engine.downloadSync!.bind(engine);
    const wrong = (from: Binding, into: Uint8Array): Uint8Array => {
      const bytes = read(from, into);
      if (reads++ === number) new Float64Array(bytes.buffer, bytes.byteOffset, 1)[0]! += 1000;
      return bytes;
    };
    engine.downloadSync = wrong;
    engine.download = async (from, into) => wrong(from, into);
    return engine;
  }

  it('says that the engine gave two values for one program', async () => {
    const said: string[] = [];
    for (let number = 0; number < 12; number++) {
      await setEngine(wrongOnce(number));
      await checkGradients(squares(2)).catch((error: Error) => said.push(error.message));
    }
    expect(said.length).toBeGreaterThan(6);
    for (const text of said) expect(text).toMatch(/the same program gave .*, then /);
  });

  it('says that it gave the same values once more', async () => {
    await setEngine(createReferenceEngine());
    expect(await checkGradients(squares(2))).toBe(true);
    await expect(checkGradients(squares(3))).rejects.toThrow(/^gradient: .* once more, the values are the same$/);
  });
});
