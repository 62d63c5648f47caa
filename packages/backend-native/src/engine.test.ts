/** The engine: what it says of itself, results that do not depend on threads, checked code, its switch. */
import { type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it, vi } from 'vitest';
import { createNativeEngine } from './create.ts';
import type { NativeEngine } from './engine.ts';
import { nativeProvider } from './provider.ts';
import { selfTest } from './self-test.ts';
import { targets } from './testing/targets.ts';

const there = targets().length > 0;

/** Each group g of many writes sin-like work of its number. */
function groupsProgram(): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const groups = 5000;
  const y = e.param(0, 'float32', 'write', groups);
  const group = e.special('group', 0, groups);
  const sum = b.reg('sum', 'float32', 1, 1);
  b.store(sum, 0, e.cast(group, 'float32'));
  b.loop(200, (i) => b.store(sum, 0, e.add(e.mul(b.load(sum, 0), e.f32(0.99)), e.cast(i, 'float32'))));
  b.store(y, group, b.load(sum, 0));
  return b.build({ name: 'groups', grid: [groups, 1, 1], params: [y], cost: { flops: 1000, bytes: 4 } } as never);
}

function result(engine: NativeEngine, program: Program, bytes: number): Uint8Array {
  const buffer = engine.alloc(bytes);
  const binding = { buffer, offset: 0, bytes };
  const kernels = engine.compile([program]);
  engine.submit([{ kind: 'dispatch', kernel: kernels[0]!, bindings: [binding], scalars: [] }]);
  engine.release(kernels);
  return engine.downloadSync(binding, new Uint8Array(bytes));
}

describe.skipIf(!there)('the native engine', () => {
  it('gives the same with any number of threads', () => {
    const results = [1, 2, 7].map((threads) => {
      const engine = createNativeEngine({ threads });
      const all = Array.from({ length: 20 }, () => result(engine, groupsProgram(), 20000));
      expect(all.every((r) => Buffer.compare(r, all[0]!) === 0)).toBe(true);
      engine.dispose();
      return all[0]!;
    });
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
  });

  it('stops checked code that reaches outside of its memory', () => {
    const b = new ProgramBuilder();
    const y = b.e.param(0, 'float32', 'write', 16);
    b.loop(17, (i) => b.store(y, i, b.e.f32(1)));
    const program = b.build({ name: 'outside' });
    const checked = createNativeEngine({ threads: 1, checked: true });
    expect(() => result(checked, program, 128)).toThrow('reaches outside of its memory (check 1)');
    checked.dispose();
  });

  it('tells the instructions of a kernel', async () => {
    const engine = createNativeEngine({ threads: 1, isa: 'x64-v3' });
    const [kernel] = engine.compile([groupsProgram()]);
    const { language, text } = await engine.source(kernel!);
    expect(language).toBe('x64');
    expect(text).toContain('vmulss');
    expect(text).not.toContain('zmm');
    engine.dispose();
  });

  it('passes its self-test and says what it is', async () => {
    expect(selfTest()).toBeNull();
    expect(await nativeProvider.probe()).toMatchObject({
      score: 5,
      reason: expect.stringMatching(/^machine code, AVX.*, vectors of \d\d bytes, \d+ threads?$/),
    });
    expect(() => createNativeEngine({ vectorBytes: 64, isa: 'x64-v3' })).toThrow('vectors of 64 bytes need isa x64-v4');
    expect(() => createNativeEngine({ vectorBytes: 8 as 16 })).toThrow('vectorBytes');
    const engine = createNativeEngine();
    engine.dispose();
    expect(() => engine.alloc(8)).toThrow('disposed');
  });

  it('runs a list again as it was, and none whose buffer or kernel is gone', () => {
    const engine = createNativeEngine({ threads: 1 });
    const bytes = 20000;
    const wanted = result(engine, groupsProgram(), bytes);
    const places = [0, 1].map(() => ({ buffer: engine.alloc(bytes), offset: 0, bytes }));
    const kernels = engine.compile([groupsProgram()]);
    const [first, second] = places.map((place) => [
      { kind: 'dispatch', kernel: kernels[0]!, bindings: [place], scalars: [] } as const,
    ]);
    const isDone = (at: number): boolean =>
      Buffer.compare(engine.downloadSync(places[at]!, new Uint8Array(bytes)), wanted) === 0;
    const clear = (): void => {
      for (const place of places) engine.upload(place, new Uint8Array(bytes));
    };
    for (const [list, done] of [
      [first, [true, false]],
      [first, [true, false]],
      [second, [false, true]],
      [first, [true, false]],
    ] as const) {
      clear();
      engine.submit(list!);
      expect([0, 1].map(isDone)).toEqual(done);
    }
    engine.free(places[0]!.buffer);
    expect(() => engine.submit(first!)).toThrow('was freed');
    expect(() => engine.submit(first!)).toThrow('was freed');
    engine.submit(second!);
    engine.release(kernels);
    expect(() => engine.submit(second!)).toThrow("kernel 'groups' was released");
    engine.dispose();
    expect(() => engine.submit(second!)).toThrow('disposed');
  });

  it('refuses bindings that are not its own, freed or too small', () => {
    const [a, b] = [createNativeEngine({ threads: 1 }), createNativeEngine({ threads: 1 })];
    const buffer = a.alloc(64);
    expect(() => b.upload({ buffer, offset: 0, bytes: 4 }, new Uint8Array(4))).toThrow('another engine');
    expect(() => a.upload({ buffer, offset: 62, bytes: 4 }, new Uint8Array(4))).toThrow('outside its buffer');
    const [kernel] = a.compile([groupsProgram()]);
    const dispatch = (bytes: number): void =>
      a.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [{ buffer, offset: 0, bytes }], scalars: [] }]);
    expect(() => dispatch(64)).toThrow("kernel 'groups' needs 20000 bytes at 0: got 64");
    expect(() => dispatch(Number.NaN)).toThrow('needs 20000 bytes');
    expect(() => dispatch(20000)).toThrow('outside its buffer');
    expect(() => b.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [], scalars: [] }])).toThrow(
      'another engine',
    );
    expect(() => b.release([kernel!])).toThrow('another engine');
    a.free(buffer);
    expect(() => a.upload({ buffer, offset: 0, bytes: 4 }, new Uint8Array(4))).toThrow('freed');
    a.dispose();
    b.dispose();
  });
});

it('is switched off by POLYGRAD_NATIVE=0', async () => {
  vi.stubEnv('POLYGRAD_NATIVE', '0');
  expect(await nativeProvider.probe()).toMatchObject({ score: 0, reason: 'POLYGRAD_NATIVE=0 switches it off' });
  expect(() => createNativeEngine()).toThrow('POLYGRAD_NATIVE=0 switches it off');
  vi.unstubAllEnvs();
});
