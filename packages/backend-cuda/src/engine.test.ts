/** The engine on whatever device there is: order, memory, copies, reads (more in transfers.test.ts), refusals, life and death. */
import { type Binding, CompileError, EngineDisposedError, OutOfMemoryError } from '@polygrad/core/engine';
import { type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { createCudaEngine, type CudaEngine } from './engine.ts';
import type { CudaEngineOptions } from './setup.ts';
import { floats, part, put } from './testing/bindings.ts';
import { hasDevice } from './testing/device.ts';

const engines: CudaEngine[] = [];
function make(options: CudaEngineOptions = {}): CudaEngine {
  const engine = createCudaEngine(options);
  engines.push(engine);
  return engine;
}
afterEach(() => {
  for (const e of engines.splice(0)) e.dispose();
});

/** x[i] = x[i] * s + t, one group per element. */
function stepProgram(n: number): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'readwrite', n);
  const at = e.special('group', 0, n);
  b.store(x, at, e.add(e.mul(b.load(x, at), e.scalar(0, 'float32')), e.scalar(1, 'float32')));
  return b.build({ name: 'step', grid: [n, 1, 1] });
}

describe.skipIf(!hasDevice())('CudaEngine', () => {
  it('runs commands in the order they were submitted', async () => {
    const engine = make();
    const x = put(engine, Float32Array.of(1, 2, 3, 4));
    const [kernel] = engine.compile([stepProgram(4)]);
    let [scale, shift] = [1, 0];
    for (let batch = 0; batch < 20; batch++) {
      const commands = Array.from({ length: 10 }, (_, i) => {
        const [s, t] = [i % 2 === 0 ? 2 : 0.5, i % 3];
        [scale, shift] = [scale * s, shift * s + t];
        return { kind: 'dispatch' as const, kernel: kernel!, bindings: [x], scalars: [s, t] };
      });
      engine.submit(commands);
    }
    expect(floats(engine, x)).toEqual([1, 2, 3, 4].map((v) => Math.fround(v * scale + shift)));
  });

  it('measures commands one by one, with the same results', async () => {
    const engine = make();
    const x = put(engine, Float32Array.of(1, 2, 3, 4));
    const [kernel] = engine.compile([stepProgram(4)]);
    const times = await engine.submitTimed([
      { kind: 'dispatch', kernel: kernel!, bindings: [x], scalars: [2, 1] },
      { kind: 'copy', from: part(x, 0, 0), to: part(x, 0, 0) },
      { kind: 'dispatch', kernel: kernel!, bindings: [x], scalars: [1, 1] },
    ]);
    expect(floats(engine, x)).toEqual([4, 6, 8, 10]);
    expect(times.length).toBe(3);
    expect(times[1]).toBe(0);
    expect(times.every((ns) => ns >= 0 && Number.isFinite(ns))).toBe(true);
    expect((await engine.source(kernel!)).text).toContain('.entry');
  });

  it('copies and fills parts, also where they overlap', () => {
    const engine = make();
    const x = put(engine, Float32Array.of(0, 1, 2, 3, 4, 5, 6, 7));
    const y = put(engine, new Float32Array(4));
    engine.submit([
      { kind: 'copy', from: part(x, 4, 12), to: part(y, 4, 12) },
      { kind: 'copy', from: part(x, 0, 24), to: part(x, 8, 24) },
      { kind: 'fill', to: part(y, 0, 4), pattern: 0xbf800000 },
      { kind: 'fill', to: part(y, 0, 0), pattern: 1 },
      { kind: 'copy', from: part(x, 0, 0), to: part(y, 0, 0) },
    ]);
    expect(floats(engine, x)).toEqual([0, 1, 0, 1, 2, 3, 4, 5]);
    expect(floats(engine, y)).toEqual([-1, 1, 2, 3]);
  });

  it('runs kernels on parts of buffers', () => {
    const engine = make();
    const x = put(engine, Float32Array.of(1, 2, 3, 4, 5, 6));
    const [kernel] = engine.compile([stepProgram(2)]);
    engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [part(x, 12, 8)], scalars: [10, 1] }]);
    expect(floats(engine, x)).toEqual([1, 2, 3, 41, 51, 6]);
  });

  it('reads later without blocking, many at once and in order', async () => {
    const engine = make();
    const x = put(engine, Float32Array.of(1));
    const [kernel] = engine.compile([stepProgram(1)]);
    const reads: Promise<number>[] = [];
    for (let i = 0; i < 50; i++) {
      engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x], scalars: [1, 1] }]);
      reads.push(engine.download(x, new Uint8Array(4)).then((bytes) => new Float32Array(bytes.buffer)[0]!));
    }
    expect(await Promise.all(reads)).toEqual(Array.from({ length: 50 }, (_, i) => i + 2));
    await Promise.all([engine.idle(), engine.idle()]);
  });

  it('counts memory, and refuses what does not fit', () => {
    const engine = make({ memory: 1 << 20 });
    const x = engine.alloc(1 << 19);
    const y = engine.alloc(0);
    expect(engine.memory()).toEqual({ bytes: 1 << 19, buffers: 2, reservedBytes: expect.any(Number) });
    expect(() => engine.alloc((1 << 19) + 1)).toThrow(OutOfMemoryError);
    expect(() => engine.alloc(engine.caps.maxBufferBytes + 1)).toThrow(/in one buffer: split the tensor/);
    engine.free(x);
    engine.free(y);
    expect(engine.memory()).toEqual({ bytes: 0, buffers: 0, reservedBytes: expect.any(Number) });
  });

  it('refuses buffers that were freed, of others, and places outside', () => {
    const [engine, other] = [make(), make()];
    const x = put(engine, new Float32Array(4));
    expect(() => other.upload(x, new Float32Array(1))).toThrow(/belongs to another engine/);
    expect(() => engine.upload(part(x, 8, 16), new Float32Array(4))).toThrow(/outside its buffer: offset 8/);
    engine.free(x.buffer);
    expect(() => engine.downloadSync(x, new Uint8Array(16))).toThrow(/was freed/);
    expect(() => engine.free(x.buffer)).toThrow(/was freed/);
  });

  it('refuses a dispatch with too few tensors or scalars, and a released kernel', () => {
    const engine = make();
    const x = put(engine, new Float32Array(4));
    const [kernel] = engine.compile([stepProgram(4)]);
    const run = (bindings: Binding[], scalars: number[]): void =>
      engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings, scalars }]);
    expect(() => run([], [1, 2])).toThrow(/takes 1 tensors and 2 scalars: got 0 and 2/);
    expect(() => run([x], [1])).toThrow(/got 1 and 1/);
    engine.release([kernel!]);
    engine.release([kernel!]);
    expect(() => run([x], [1, 2])).toThrow(/was released/);
  });

  it('refuses programs that PTX cannot say', () => {
    const engine = make();
    const b = new ProgramBuilder();
    const x = b.e.param(0, 'int8', 'readwrite', 4);
    b.atomic('add', x, b.e.i32(0), b.e.constant('int8', 1));
    expect(() => engine.compile([b.build({ name: 'bytes' })])).toThrow(CompileError);
    expect(() => engine.compile([b.build({ name: 'bytes' })])).toThrow(/kernel 'bytes' cannot be compiled/);
  });

  it('compiles without holding up the event loop, and waits where it must', async () => {
    const engine = make();
    const x = put(engine, Float32Array.of(1));
    // A kernel that takes the compiler a while.
    const b = new ProgramBuilder();
    const { e } = b;
    const p = e.param(0, 'float32', 'readwrite', 1);
    let value = b.load(p, e.i32(0));
    for (let i = 0; i < 400; i++)
      value = e.add(e.mul(value, e.constant('float32', 1 + i / 1e6)), e.constant('float32', 1 / i));
    b.store(p, e.i32(0), value);
    const [long] = engine.compile([b.build({ name: 'long' })]);
    await engine.ready();
    engine.submit([{ kind: 'dispatch', kernel: long!, bindings: [x], scalars: [] }]);
    expect(Number.isFinite(floats(engine, x)[0])).toBe(false);
    // Without a wait in between.
    const [kernel] = engine.compile([stepProgram(1)]);
    engine.upload(x, Float32Array.of(1));
    engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x], scalars: [2, 1] }]);
    expect(floats(engine, x)).toEqual([3]);
    // Nobody waits for what is still being compiled.
    engine.compile([stepProgram(2), stepProgram(3)]);
    const ready = engine.ready();
    engine.dispose();
    await ready;
    await engine.ready();
  });

  it('shares code among equal programs and lets it go', () => {
    const engine = make();
    const [a, b] = engine.compile([stepProgram(4), stepProgram(4)]);
    const [c] = engine.compile([stepProgram(4)]);
    expect(engine.stats).toMatchObject({ compiled: 1, reused: 2 });
    engine.release([a!, b!]);
    const x = put(engine, Float32Array.of(1, 1, 1, 1));
    engine.submit([{ kind: 'dispatch', kernel: c!, bindings: [x], scalars: [3, 0] }]);
    expect(floats(engine, x)).toEqual([3, 3, 3, 3]);
    engine.release([c!]);
    engine.compile([stepProgram(4)]);
    expect(engine.stats.compiled).toBe(2);
  });

  it('keeps two engines apart', async () => {
    const [one, two] = [make(), make()];
    const [x, y] = [put(one, Float32Array.of(1)), put(two, Float32Array.of(1))];
    const [k1] = one.compile([stepProgram(1)]);
    const [k2] = two.compile([stepProgram(1)]);
    one.submit([{ kind: 'dispatch', kernel: k1!, bindings: [x], scalars: [5, 0] }]);
    two.submit([{ kind: 'dispatch', kernel: k2!, bindings: [y], scalars: [7, 0] }]);
    one.dispose();
    expect(floats(two, y)).toEqual([7]);
  });

  it('says so after dispose, once and for all', async () => {
    const engine = make();
    const x = put(engine, Float32Array.of(1));
    const read = engine.download(x, new Uint8Array(4));
    engine.dispose();
    engine.dispose();
    engine.free(x.buffer);
    expect(new Float32Array((await read).buffer)[0]).toBe(1);
    expect((await engine.lost).reason).toBe('disposed');
    expect(() => engine.alloc(4)).toThrow(EngineDisposedError);
    expect(() => engine.submit([])).toThrow(EngineDisposedError);
    await expect(engine.download(x, new Uint8Array(4))).rejects.toThrow(EngineDisposedError);
    await engine.idle();
    expect(engine.memory().bytes).toBe(0);
  });

  it('holds memory flat over many allocations', () => {
    const engine = make();
    const cycles = (): number => {
      for (let i = 0; i < 100_000; i++) engine.free(engine.alloc(1 + (i % 4096)));
      expect(engine.memory().buffers).toBe(0);
      return process.memoryUsage().rss;
    };
    // The heap of JavaScript has its size after the first.
    const before = cycles();
    expect(cycles() - before).toBeLessThan(64 << 20);
  });
});
