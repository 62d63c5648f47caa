/** A few random programs of each kind, the same ones every time. `npm run fuzz` runs others, on other engines, for longer. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { type DType, setEngine, ShapeError, type Tensor, tensor } from '@polygrad/core';
import type { Binding, IEngine } from '@polygrad/core/engine';
import { type CallEntry, createReferenceEngine } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { check, leavingNothing } from './check.ts';
import { map, type NDArray, zip } from '../oracle/ndarray.ts';
import { makeRandom } from '../oracle/random.ts';
import { evaluate, sensitivity } from '../programs/evaluate.ts';
import { unaryCall } from '../operations/elementwise/derive.ts';
import { rowNamed } from '../operations/elementwise/row.ts';
import { unaryRows } from '../operations/elementwise/unary.ts';
import { families as operations } from '../operations/registry.ts';
import { Choices } from '../programs/choices.ts';
import { Pool } from '../programs/pool.ts';
import { fuzz, fuzzHistories, fuzzMatrices, fuzzSizes, fuzzTransforms } from './fixtures/run.ts';
import { checkGradients } from './gradients.ts';
import { type CallStep, printProgram, type Program, Ref, type Step, type Value } from '../programs/program.ts';
import { execute, type Outcome } from './execute.ts';
import { CallFuzz } from './refusals.ts';

describe('random programs', () => {
  it('give what their formulas say, on the CPU engine', async () => {
    await fuzz(await createCpuEngine({ threads: 1 }), { kind: 'programs', seed: 1, programs: 12 });
  });

  it('have products in tiles of matrices, on an engine that has those', async () => {
    const matrix = [
      { dtype: 'float16', tile: 'm16n8k16' },
      { dtype: 'bfloat16', tile: 'm16n8k16' },
    ] as const;
    const engine = createReferenceEngine({ simt: true, subgroup: 32, matrix });
    const compile = engine.compile.bind(engine);
    let tiled = 0;
    engine.compile = (programs) => {
      tiled += programs.filter(({ body }) => body.some(({ op }) => op === 'MATRIX')).length;
      return compile(programs);
    };
    await fuzz(engine, { kind: 'programs', seed: 5, programs: 25 });
    expect(tiled).toBeGreaterThan(4);
  });

  it('give the same at several sizes, whose plans they share', async () => {
    await fuzzSizes(await createCpuEngine({ threads: 1 }), { kind: 'sizes', seed: 1, programs: 6 });
  });

  it('give the bits of plans of their own where sizes share them from the first one on', async () => {
    for (const engine of [await createCpuEngine({ threads: 1 }), createReferenceEngine()]) {
      const { compared } = await fuzzSizes(engine, { kind: 'sizes', seed: 3, programs: 5, sharing: 'always' });
      expect(compared).toBeGreaterThan(15);
    }
  });

  it('have derivatives that agree', async () => {
    await fuzz(await createCpuEngine({ threads: 1 }), { kind: 'gradients', seed: 2, programs: 3 });
  });

  it('give the same replayed, in loops, in batches and on state', async () => {
    const engine = await createCpuEngine({ threads: 1 });
    const { compared, replays } = await fuzzTransforms(engine, { kind: 'transforms', seed: 4, programs: 8 });
    expect(compared).toBeGreaterThan(30);
    expect(replays).toBeGreaterThan(0);
    const slopes = await fuzzTransforms(engine, { kind: 'transform-gradients', seed: 5, programs: 3 });
    expect(slopes.compared).toBeGreaterThan(5);
  });

  it('of leaves, tapes and assignments are what arrays with a history of their own give', async () => {
    const { compared, replays } = await fuzzHistories(await createCpuEngine({ threads: 1 }), { seed: 6, programs: 40 });
    expect(compared).toBeGreaterThan(40);
    expect(replays).toBeGreaterThan(0);
  });

  it('of linear algebra fulfil their equations, and are the same in batches and loops', async () => {
    const { compared } = await fuzzMatrices(await createCpuEngine({ threads: 1 }), { seed: 8, programs: 4 });
    expect(compared).toBeGreaterThan(12);
  });

  it('and calls of every function are refused in the words of the library, or have the values of the reference engine', async () => {
    const engine = await createCpuEngine({ threads: 1 });
    const { valid, compared } = await fuzz(engine, { kind: 'errors', seed: 3, programs: 12 });
    expect(valid).toBeGreaterThan(140);
    expect(compared).toBeGreaterThan(valid - 10);
  });
});

const unused = (): never => {
  throw new Error('another operand');
};

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

  it('knows how far every function of one number may be from its formula, next to 0 and far from it', async () => {
    await setEngine(await createCpuEngine({ threads: 1 }));
    const random = makeRandom(5);
    const data = Array.from({ length: 400 }, (_, i) => {
      const size = i % 2 === 0 ? 10 ** (random() * 10 - 8.5) : random() * 8;
      return Math.fround(random() < 0.5 ? -size : size);
    });
    let functions = 0;
    for (const row of unaryRows.filter(({ noise = 'none', drawn }) => noise !== 'none' && drawn !== false)) {
      const fits = data.filter((x) => row.domain?.(x) ?? true);
      const input = { kind: 'input', id: 0, dtype: 'float32', shape: [fits.length], data: fits } as const;
      const made = unaryCall(row, new Pool(new Choices([]), [input], unused))!;
      const call = { kind: 'call', ordered: true, id: 1, op: row.name, noise: 'none', ...made } as const;
      const program: Program = { steps: [input, call], outputs: [1], scoped: false };
      const base = evaluate(program);
      const moved = sensitivity(program, base, random, 60).get(1)!.data as number[];
      const [{ values }] = (await execute(program)) as [Outcome];
      // No tolerance but what roundings explain.
      for (const [i, expected] of base.get(1)!.data.entries()) {
        const error = Math.abs(values[i]! - expected);
        if (error > 4 * moved[i]!) expect([row.name, fits[i], values[i]]).toEqual([row.name, fits[i], expected]);
      }
      functions++;
    }
    expect(functions).toBeGreaterThan(40);
  });

  it('knows that a function whose terms cancel may go either way at a jump', () => {
    const small = { id: 0, dtype: 'float32', shape: [2], data: [Math.fround(7.9e-5), 0.5] } as const;
    const input = { kind: 'input', ...small } as const;
    const call = { kind: 'call', args: [new Ref(0)], ordered: true } as const;
    const shrunk = unaryCall(rowNamed(unaryRows, 'tanhShrink'), new Pool(new Choices([]), [small], unused))!;
    const ceil = (x: NDArray | undefined): NDArray => ({ shape: [2], data: x!.data.map(Math.ceil) });
    const steps = [
      input,
      { ...call, id: 1, op: 'tanhShrink', noise: 'all', ...shrunk },
      { ...call, id: 2, op: 'ceil', args: [new Ref(1)], dtype: 'float32', formula: ceil, noise: 'none' },
    ] as const;
    const program: Program = { steps, outputs: [2], scoped: false };
    const base = evaluate(program);
    expect(base.get(2)!.data).toEqual([1, 1]);
    // x - tanh(x) is 1.6e-13 there, far below a rounding of x. At 0.5 it is 0.04, and certain.
    const [near, far] = sensitivity(program, base, makeRandom(1), 60).get(2)!.data as number[];
    expect(near).toBeGreaterThanOrEqual(1);
    expect(far).toBe(0);
  });

  it('knows that integers become floats before a function of floats', () => {
    const large = { id: 0, dtype: 'uint32', shape: [1], data: [4294967291] } as const;
    const { calls } = operations.elementwise.find(({ name }) => name === 'sin')!;
    const made = calls[0]!.make(new Pool(new Choices([]), [large], unused));
    expect(made?.formula(large).data).toEqual([Math.sin(2 ** 32)]);
  });

  it('never trains a batch norm on one value per channel, which the library refuses', () => {
    const row = operations.normalization.find(({ name }) => name === 'batchNorm')!;
    let trained = 0;
    for (const [shape, allowed] of [
      [[1, 3], false],
      [[2, 3], true],
    ] as const) {
      const x = { id: 0, dtype: 'float32', shape, data: [1, 2, 3, 4, 5, 6].slice(0, shape[0] * 3) } as const;
      const input = (dtype: DType, drawn: readonly number[], data: readonly number[]): Value => ({
        id: 1,
        dtype,
        shape: drawn,
        data,
      });
      for (let i = 0; i < 200; i++) {
        const random = makeRandom(i + 1);
        const numbers = Array.from({ length: 30 }, () => Math.floor(random() * 0x10000));
        const made = row.calls[0]!.make(new Pool(new Choices(numbers), [x], input));
        const [of, options] = (made?.args ?? []) as [Ref, { training?: boolean }];
        if (made === null || of.id !== 0 || options.training !== true) continue;
        expect(allowed).toBe(true);
        trained++;
      }
    }
    expect(trained).toBeGreaterThan(20);
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
        formula: (x) => ({ shape: [2], data: x.data.map((v) => v ** power) }),
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

  const input = (id: number, values: readonly number[]): Step => ({
    kind: 'input',
    id,
    dtype: 'float64',
    shape: [values.length],
    data: values,
  });

  const call = (id: number, op: string, args: CallStep['args'], formula: CallStep['formula']): Step => ({
    kind: 'call',
    id,
    op,
    args,
    dtype: 'float64',
    formula,
    noise: 'all',
    ordered: true,
  });

  it('passes over the corner of a gradient: the least of functions that share value and gradient', async () => {
    // cosh(a x + b) at a = b = 0: each way from there has a least one of its own, and the library takes the mean over all x.
    const both = (f: (x: number, y: number) => number) => (x?: NDArray, y?: NDArray) => zip(f, x!, y!);
    const cornered: Program = {
      steps: [
        ...[[0], [0], [1, -0.5, 2, 0.75]].map((values, id) => input(id, values)),
        call(
          3,
          'mul',
          [new Ref(0), new Ref(2)],
          both((x, y) => x * y),
        ),
        call(
          4,
          'add',
          [new Ref(3), new Ref(1)],
          both((x, y) => x + y),
        ),
        call(5, 'cosh', [new Ref(4)], (x) => map(x!, Math.cosh)),
        call(6, 'min', [new Ref(5)], (x) => ({ shape: [], data: [Math.min(...x!.data)] })),
      ],
      outputs: [6],
      scoped: false,
    };
    await setEngine(createReferenceEngine());
    expect(await checkGradients(cornered)).toBe(true);
  });

  it('passes over a smooth function at equal values: relu(x) - relu(-x) is x, and no branch has its derivative at 0', async () => {
    const relu = (x?: NDArray): NDArray => map(x!, (v) => Math.max(v, 0));
    const joined = (at: number, first: (x?: NDArray) => NDArray): Program => ({
      steps: [
        input(0, [at]),
        call(1, 'neg', [new Ref(0)], (x) => map(x!, (v) => -v)),
        call(2, 'relu', [new Ref(0)], first),
        call(3, 'relu', [new Ref(1)], relu),
        call(4, 'sub', [new Ref(2), new Ref(3)], (x, y) => zip((a, b) => a - b, x!, y!)),
      ],
      outputs: [4],
      scoped: false,
    });
    await setEngine(createReferenceEngine());
    expect(await checkGradients(joined(0, relu))).toBe(true);
    // Elsewhere a wrong derivative stays one.
    const half = (x?: NDArray): NDArray => map(relu(x), (v) => 0.5 * v + 0.25);
    await expect(checkGradients(joined(0.5, half))).rejects.toThrow('gradient: ');
  });

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

  it('knows that large terms of a gradient may cancel: what is left holds their roundings', async () => {
    // The divergence of x from itself: each element has slopes of exp(x) and -exp(x), and that of -x is added in between.
    const cancelling = (most: number, slope: number): Program => ({
      steps: [
        input(0, [-46, -99, -55, -70, -7, 9, 23, most, -9, 16, -50, -80]),
        call(1, 'klDiv', [new Ref(0), new Ref(0), { logTarget: true }], () => ({ shape: [], data: [0] })),
        call(2, 'neg', [new Ref(0)], (x) => map(x!, (v) => -slope * v)),
      ],
      outputs: [1, 2],
      scoped: false,
    });
    await setEngine(createReferenceEngine());
    expect(await checkGradients(cancelling(30, 1))).toBe(true);
    // All of the slope of -x is lost, and more than allowed with it.
    expect(await checkGradients(cancelling(99, 1))).toBe(true);
    await expect(checkGradients(cancelling(30, 1.1))).rejects.toThrow(
      /^gradient: .* once more, the values are the same$/,
    );
  });
});
