/** What only core can see of kernels of users: lines in errors, keys of plans, what is cleared, kernel counts, options that do not fit. */
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { defineKernel, KernelError, type KernelOptions } from './define.ts';
import { flush, grad, ones, scope, setEngine, stats, tensor, type Tensor } from '../index.ts';
import { whereOf } from './value.ts';
import { hashOf } from './lower.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

const thrownBy = (call: () => unknown): Error => {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
};

describe('errors', () => {
  it('name the line of the body', () => {
    const kernel = defineKernel({
      name: 'wrong',
      form: 'groups',
      inputs: { x: 'float32' },
      outputs: { y: 'x' },
      body: (k, { x }, { y }) => {
        k.ifThen(k.thread.less(3), () => {
          k.barrier();
        });
        y.set(0, x.at(0));
      },
    });
    const error = thrownBy(() => kernel({ x: ones([3]) }));
    expect(error).toBeInstanceOf(KernelError);
    const { where, op, code } = error as KernelError;
    expect(where).toMatch(/custom\.test\.ts:\d+:\d+$/);
    expect([op, code]).toEqual(['wrong', 'OPERATION']);
    expect(error.message).toContain('[wrong] BARRIER is in a block that not all threads may enter (');
  });

  it('races for shared memory name the line of the later access, on every engine', () => {
    const mirror = (meet: (k: { barrier(part?: number): void }) => void) =>
      defineKernel({
        name: 'mirror',
        form: 'groups',
        threads: 8,
        inputs: { x: { dtype: 'float32', rank: 1 } },
        outputs: { y: 'x' },
        grid: () => [1],
        body: (k, { x }, { y }) => {
          const n = x.size(0);
          const row = k.shared('float32', n);
          k.each(n, (i) => row.set(i, x.at(i)));
          meet(k);
          k.each(n, (i) => {
            y.set(i, row.at(i.neg().add(n - 1)));
          });
        },
      });
    const x = ones([20]);
    expect(() => mirror((k) => k.barrier())({ x })).not.toThrow();
    // Threads 0 and 3 of 8 read what the other one wrote, and so on: parts of four are enough, and two are not.
    for (const part of [4, 8, 16]) expect(() => mirror((k) => k.barrier(part))({ x })).not.toThrow();
    expect(thrownBy(() => mirror((k) => k.barrier(2))({ x })).message).toMatch(
      /^\[mirror\] LOAD of thread \d reads element \d+ of group memory, which thread \d writes, without a barrier between/,
    );
    for (const part of [0, 1, 3, -2, 2.5])
      expect(thrownBy(() => mirror((k) => k.barrier(part))({ x })).message).toContain(
        `a barrier for parts of ${part} threads: give a power of two, at least 2`,
      );
    expect(thrownBy(() => mirror(() => {})({ x })).message).toMatch(
      /^\[mirror\] LOAD of thread 0 reads element 19 of group memory, which thread 3 writes, without a barrier between \(.*custom\.test\.ts:\d+:\d+\)$/,
    );
  });

  it('of values name it too, and the verifier is quoted', () => {
    const kernel = defineKernel({
      name: 'wrong',
      form: 'threads',
      inputs: { x: 'int32' },
      outputs: { y: 'x' },
      body: (k, { x }, { y }) => y.set(k.index, x.at(k.index).sqrt()),
    });
    const error = thrownBy(() => kernel({ x: ones([3], { dtype: 'int32' }) })) as KernelError;
    expect(error.message).toMatch(/^\[wrong\] SQRT does not take int32 \(.*custom\.test\.ts:\d+:\d+\)$/);
  });

  it('pass over files of the library and of its compiler', () => {
    const lines = [
      'Error',
      '    at fail (/app/node_modules/@polygrad/core/dist/custom/errors.js:78:11)',
      '    at write (/app/node_modules/@polygrad/compiler/dist/programs/program-set.js:40:9)',
      '    at body (/app/src/mine.ts:12:5)',
    ];
    expect(whereOf(Object.assign(new Error(), { stack: lines.join('\n') }))).toBe('/app/src/mine.ts:12:5');
  });

  it('name the line of the call where the body has returned, and functions that are none', () => {
    const x = ones([2, 2]);
    const bare = defineKernel({
      name: 'bare',
      form: 'elementwise',
      inputs: { x: 'float32' },
      outputs: { y: 'x' },
      body: (() => undefined) as never,
    });
    const error = thrownBy(() => bare({ x })) as KernelError;
    expect(error.message).toMatch(/the body returned no y/);
    expect(error.where).toMatch(/custom\.test\.ts:\d+:\d+$/);
    const wrong: readonly (readonly [(k: never) => void, RegExp])[] = [
      [
        (k: { fold: (...a: unknown[]) => void }) => k.fold(2, 'max', () => 1),
        /a fold of 'max': give \{ start, step, combine \}/,
      ],
      [
        (k: { fold: (...a: unknown[]) => void }) => k.fold(2, { start: { a: 1 }, step: () => ({ a: 1 }) }),
        /combine of a fold of undefined/,
      ],
      [(k: { loop: (...a: unknown[]) => void }) => k.loop(2), /a loop of undefined: give a function/],
      [(k: { each: (...a: unknown[]) => void }) => k.each(2, 1), /each\(\) of 1: give a function/],
    ];
    for (const [body, text] of wrong) {
      const kernel = defineKernel({
        name: 'wrong',
        form: 'groups',
        inputs: { x: 'float32' },
        outputs: { y: 'x' },
        body: body as never,
      });
      const found = thrownBy(() => kernel({ x })) as KernelError;
      expect(found).toBeInstanceOf(KernelError);
      expect(found.message).toMatch(text);
      expect(found.where).toMatch(/custom\.test\.ts/);
    }
  });

  it('of the body itself are its own', () => {
    const kernel = defineKernel({
      name: 'own',
      form: 'threads',
      inputs: { x: 'float32' },
      outputs: { y: 'x' },
      body: () => {
        throw new RangeError('mine');
      },
    });
    expect(thrownBy(() => kernel({ x: ones([3]) }))).toBeInstanceOf(RangeError);
  });

  it('no gradient', () => {
    const kernel = defineKernel({
      name: 'constant',
      form: 'elementwise',
      inputs: { x: 'float32' },
      outputs: { y: 'x' },
      body: (_, { x }) => x,
    });
    expect(() => grad((x: Tensor) => kernel({ x }).y.sum())(ones([2]))).toThrow(
      '[constant] this kernel has no gradient: give one to defineKernel, or detach() what goes into it',
    );
  });

  const good = { name: 'k', form: 'threads', inputs: { x: 'float32' }, outputs: { y: 'x' }, body: () => {} };
  it.each([
    [{ ...good, name: 'not a name' }, 'name'],
    [{ ...good, form: 'wavefront' }, 'form'],
    [{ ...good, inputs: {} }, 'inputs are none'],
    [{ ...good, outputs: {} }, 'outputs are none'],
    [{ ...good, inputs: { x: 'float8' } }, 'input x takes'],
    [{ ...good, outputs: { y: 'z' } }, 'output y is'],
    [{ ...good, outputs: { x: 'x' } }, "'x' names an input and an output: give one of them another name"],
    [{ ...good, inputs: { 'a-b': 'float32' } }, 'names no input or output'],
    [{ ...good, threads: 8 }, 'threads'],
    [{ ...good, form: 'groups', threads: 12 }, 'threads'],
    [{ ...good, body: undefined }, 'body is left out'],
    [{ ...good, grid: [3] }, 'grid'],
  ])('options that do not fit: %j', (options, text) => {
    expect(() => defineKernel(options as never)).toThrow(text);
  });

  const kernel = defineKernel({
    name: 'copy',
    form: 'threads',
    inputs: { x: { dtype: ['float32', 'int32'], rank: 1 } },
    outputs: { y: 'x' },
    body: (k, { x }, { y }) => y.set(k.index, x.at(k.index)),
  });
  it('inputs that do not fit', () => {
    expect(() => kernel({ x: ones([2, 2]) })).toThrow('takes rank 1');
    expect(() => kernel({ x: ones([2], { dtype: 'bool' }) })).toThrow('takes float32, int32');
    expect(() => kernel({} as never)).toThrow('input x is left out');
    expect(() => kernel({ x: ones([2]), z: ones([2]) } as never)).toThrow("no input is named 'z'");
    expect(() => kernel(null as never)).toThrow('inputs are null');
    expect(() => kernel({ x: 'a' } as never)).toThrow("input x is 'a'");
  });
});

/** Dispatches of what a function records. */
async function dispatches(run: () => readonly Tensor[]): Promise<number> {
  const engine = createNullEngine();
  await setEngine(engine);
  flush();
  engine.reset();
  const made = scope(run);
  flush();
  for (const t of made) t.dispose();
  return engine.counts().dispatches;
}

type Options = KernelOptions<{ readonly x: 'float32' }, 'y'>;
const over = (body: (...given: Parameters<Extract<Options, { form: 'threads' }>['body']>) => void) =>
  defineKernel({ name: 'k', form: 'threads', inputs: { x: 'float32' }, outputs: { y: 'x' }, body });

describe('what runs', () => {
  it('elementwise kernels share a loop with what is around', async () => {
    const twice = defineKernel({
      name: 'twice',
      form: 'elementwise',
      inputs: { x: 'float32' },
      outputs: { y: 'x' },
      body: (_, { x }) => x.add(x),
    });
    expect(
      await dispatches(() => [
        twice({ x: tensor([1, 2, 3]).add(1) })
          .y.exp()
          .sum(),
      ]),
    ).toBe(1);
  });

  it('outputs are cleared where not every element is plainly written', async () => {
    const all = over((k, { x }, { y }) => y.set(k.index, x.at(k.index)));
    const some = over((k, { x }, { y }) => k.ifThen(x.at(k.index).less(0), () => y.set(k.index, 1)));
    const shifted = over((k, { x }, { y }) => y.set(k.index[0].add(1), x.at(k.index)));
    const looped = over((k, { x }, { y }) => k.loop(x.size(0), (i) => y.set(i, x.at(i))));
    const x = tensor([1, 2, 3]);
    expect(await dispatches(() => [all({ x }).y])).toBe(1);
    expect(await dispatches(() => [some({ x }).y])).toBe(2);
    expect(await dispatches(() => [shifted({ x }).y])).toBe(2);
    expect(await dispatches(() => [looped({ x }).y])).toBe(1);
  });

  it('equal kernels are one, others are not', async () => {
    const times = (n: number) => over((k, { x }, { y }) => y.set(k.index, x.at(k.index).mul(n)));
    const x = tensor([1, 2]);
    expect(await times(2)({ x }).y.array()).toEqual([2, 4]);
    expect(await times(3)({ x }).y.array()).toEqual([3, 6]);
    const { plansMade } = stats();
    expect(await times(2)({ x }).y.array()).toEqual([2, 4]);
    expect(stats().plansMade).toBe(plansMade);
    expect(await times(4)({ x }).y.array()).toEqual([4, 8]);
    expect(stats().plansMade).toBe(plansMade + 1);
    expect(await dispatches(() => [times(2)({ x }).y.add(times(2)({ x }).y)])).toBe(2);
    expect(await dispatches(() => [times(2)({ x }).y.add(times(3)({ x }).y)])).toBe(3);
  });

  it('hashes of texts that differ a little differ in every word', () => {
    const seen = new Set<number>();
    for (let i = 0; i < 2000; i++) for (const word of hashOf(`kernel ${i}`)) seen.add(word);
    expect(seen.size).toBeGreaterThan(7990);
  });
});
