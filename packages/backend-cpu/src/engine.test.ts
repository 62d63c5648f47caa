import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  type Binding,
  type CompiledKernel,
  CompileError,
  EngineDisposedError,
  type IEngine,
  OutOfMemoryError,
} from '@polygrad/core/engine';
import { type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { afterEach, describe, expect, it } from 'vitest';
import { type CpuEngine, createCpuEngine } from './engine.ts';
import { detectFeatures } from './features.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const engines: CpuEngine[] = [];
function make(options: { threads?: number; memory?: number } = {}): CpuEngine {
  const engine = createCpuEngine(options);
  engines.push(engine);
  return engine;
}
afterEach(() => {
  for (const e of engines.splice(0)) e.dispose();
});

function put(engine: IEngine, data: Float32Array | Int32Array): Binding {
  const binding = { buffer: engine.alloc(data.byteLength), offset: 0, bytes: data.byteLength };
  engine.upload(binding, data);
  return binding;
}
const floats = (engine: IEngine, b: Binding): Float32Array =>
  new Float32Array(engine.downloadSync!(b, new Uint8Array(b.bytes)).buffer);

/** Large arrays, without a report of every element. */
function same(got: Float32Array, want: Float32Array): void {
  expect(got.length).toBe(want.length);
  const at = got.findIndex((x, i) => x !== want[i]);
  if (at >= 0) expect.fail(`element ${at} is ${got[at]}, expected ${want[at]}`);
}

/** out[i] = x[i] * s + i, in groups of `size` elements. */
function scaleProgram(n: number, size: number, cost = { flops: 0, bytes: 0 }): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const [x, out] = [e.param(0, 'float32', 'read', n), e.param(1, 'float32', 'write', n)];
  const s = e.scalar(0, 'float32');
  const g = e.special('group', 0, n / size);
  b.loop(size, (i) => {
    const at = e.add(e.mul(g, e.i32(size)), i);
    b.store(out, at, e.add(e.mul(b.load(x, at), s), e.cast(at, 'float32')));
  });
  return b.build({ name: 'scale', grid: [n / size, 1, 1], cost });
}

/** Waits for the event, however long a busy machine takes: what never comes is a hanging test. */
async function workersReady(engine: CpuEngine, count: number): Promise<void> {
  while (engine.readyWorkers < count) await new Promise((r) => setTimeout(r, 5));
}

describe('CpuEngine', () => {
  it('does not keep the programs that it was given: they are large, and packed ones tell the same', async () => {
    const engine = make({ threads: 1 });
    const compiled = (): readonly [CompiledKernel, WeakRef<Program>] => {
      const program = scaleProgram(4, 2);
      return [engine.compile([program])[0]!, new WeakRef(program)];
    };
    const [kernel, program] = compiled();
    // References are held to the end of the turn that made them.
    await new Promise((resolve) => setTimeout(resolve));
    collect();
    expect(program.deref()).toBeUndefined();
    expect(kernel.program.name).toBe('scale');
  });

  it('uploads, runs and downloads', async () => {
    const engine = make({ threads: 1 });
    const x = put(engine, Float32Array.of(1, 2, 3, 4));
    const out = put(engine, new Float32Array(4));
    const [kernel] = engine.compile([scaleProgram(4, 2)]);
    engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x, out], scalars: [10] }]);
    expect([...floats(engine, out)]).toEqual([10, 21, 32, 43]);
    const bytes = await engine.download({ ...out, offset: 4, bytes: 8 }, new Uint8Array(8));
    expect([...new Float32Array(bytes.buffer)]).toEqual([21, 32]);
    await engine.idle();
  });

  it('measures every command of a batch, and shows what a kernel was made into', async () => {
    const engine = make({ threads: 1 });
    const x = put(engine, Float32Array.of(1, 2, 3, 4));
    const out = put(engine, new Float32Array(4));
    const [kernel] = engine.compile([scaleProgram(4, 2)]);
    const times = await engine.submitTimed([
      { kind: 'dispatch', kernel: kernel!, bindings: [x, out], scalars: [10] },
      { kind: 'copy', from: out, to: x },
    ]);
    expect([...floats(engine, x)]).toEqual([10, 21, 32, 43]);
    expect(times.length).toBe(2);
    for (const time of times) expect(time).toBeGreaterThan(0);
    const { language, text } = await engine.source(kernel!);
    expect(language).toBe('wasm');
    expect(text).toMatch(/^\(func \$/);
    expect(text).toContain('f32.mul');
    expect(text).not.toContain('unknown');
  });

  it('copies and fills, also overlapping and large ranges', () => {
    for (const threads of [1, 2]) {
      const engine = make({ threads });
      const n = 300_000;
      const a = put(
        engine,
        Float32Array.from({ length: n }, (_, i) => i),
      );
      const b = put(engine, new Float32Array(n));
      engine.submit([{ kind: 'copy', from: a, to: b }]);
      same(floats(engine, b), floats(engine, a));
      // Shifted by one element inside one buffer.
      engine.submit([
        { kind: 'copy', from: { ...a, bytes: a.bytes - 4 }, to: { ...a, offset: 4, bytes: a.bytes - 4 } },
      ]);
      same(
        floats(engine, a),
        Float32Array.from({ length: n }, (_, i) => Math.max(0, i - 1)),
      );
      const part = { ...b, offset: 8, bytes: 4 * (n - 5) };
      engine.submit([{ kind: 'fill', to: part, pattern: 0x3f800000 }]);
      same(
        floats(engine, b),
        Float32Array.from({ length: n }, (_, i) => (i < 2 || i >= n - 3 ? i : 1)),
      );
      engine.submit([{ kind: 'fill', to: { ...b, bytes: 0 }, pattern: 7 }]);
    }
  });

  it('gives the same results on one and on two threads', async () => {
    const n = 1 << 18;
    const data = Float32Array.from({ length: n }, (_, i) => Math.sin(i));
    const results: Float32Array[] = [];
    for (const threads of [1, 2, 3]) {
      const engine = make({ threads });
      const x = put(engine, data);
      const out = put(engine, new Float32Array(n));
      const [kernel] = engine.compile([scaleProgram(n, 256, { flops: 1024, bytes: 2048 })]);
      await workersReady(engine, threads - 1);
      for (let round = 0; round < 50; round++) {
        engine.submit([
          { kind: 'dispatch', kernel: kernel!, bindings: round & 1 ? [out, x] : [x, out], scalars: [0.5] },
        ]);
      }
      // Let the workers fall asleep, then use them again.
      await new Promise((r) => setTimeout(r, 20));
      for (let round = 0; round < 2; round++)
        engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x, out], scalars: [0.25] }]);
      results.push(floats(engine, out));
    }
    same(results[1]!, results[0]!);
    same(results[2]!, results[0]!);
  });

  it('lets workers end a dispatch before its memory is touched', async () => {
    const engine = make({ threads: 2 });
    const n = 1 << 15;
    const inputs = [1, 2, 3].map((k) => Float32Array.from({ length: n }, (_, i) => i % (100 * k)));
    const x = put(engine, inputs[0]!);
    const [kernel] = engine.compile([scaleProgram(n, 256, { flops: 4096, bytes: 2048 })]);
    await workersReady(engine, 1);
    for (let round = 0; round < 120; round++) {
      const input = inputs[round % 3]!;
      engine.upload(x, input);
      const out = { buffer: engine.alloc(4 * n), offset: 0, bytes: 4 * n };
      engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x, out], scalars: [2] }]);
      // Each of these would change what the dispatch reads or writes, did they not wait.
      if (round % 3 === 0) engine.upload(x, inputs[1]!);
      else if (round % 3 === 1) engine.submit([{ kind: 'fill', to: x, pattern: 0 }]);
      else engine.release(engine.compile([scaleProgram(n, 2 ** (1 + (round % 7)))]));
      same(
        floats(engine, out),
        input.map((v, i) => v * 2 + i),
      );
      engine.free(out.buffer);
    }
    await engine.idle();
  });

  it('shares code between equal programs and drops it after the last release', async () => {
    const engine = make({ threads: 2 });
    const x = put(engine, Float32Array.of(1, 2));
    const out = put(engine, new Float32Array(2));
    const [a] = engine.compile([scaleProgram(2, 1)]);
    const [b] = engine.compile([scaleProgram(2, 1)]);
    expect((a as { code?: unknown }).code).toBe((b as { code?: unknown }).code);
    engine.release([a!]);
    engine.release([a!]);
    engine.submit([{ kind: 'dispatch', kernel: b!, bindings: [x, out], scalars: [3] }]);
    expect([...floats(engine, out)]).toEqual([3, 7]);
    engine.release([b!]);
    const [c] = engine.compile([scaleProgram(2, 1)]);
    expect((c as { code?: unknown }).code).not.toBe((b as { code?: unknown }).code);
    engine.submit([{ kind: 'dispatch', kernel: c!, bindings: [x, out], scalars: [4] }]);
    expect([...floats(engine, out)]).toEqual([4, 9]);
  });

  it('survives many modules coming and going while workers look at them', async () => {
    const engine = make({ threads: 2 });
    const n = 4096;
    const x = put(engine, new Float32Array(n).fill(1));
    const out = put(engine, new Float32Array(n));
    for (let round = 0; round < 60; round++) {
      const size = 2 ** (1 + (round % 8));
      const [kernel] = engine.compile([scaleProgram(n, size, { flops: 1e6, bytes: 0 })]);
      engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x, out], scalars: [round] }]);
      const got = floats(engine, out);
      for (let i = 0; i < n; i += 97) expect(got[i]).toBe(round + i);
      engine.release([kernel!]);
      if (round === 10) await workersReady(engine, 1);
    }
  });

  it('counts memory and says when there is no more', () => {
    const engine = make({ threads: 1, memory: 32 << 20 });
    expect(engine.memory()).toMatchObject({ bytes: 0, buffers: 0 });
    const a = engine.alloc(1000);
    const b = engine.alloc(8 << 20);
    expect(engine.memory()).toMatchObject({ bytes: 1000 + (8 << 20), buffers: 2 });
    expect(() => engine.alloc(30 << 20)).toThrow(OutOfMemoryError);
    expect(() => engine.alloc(2 ** 33)).toThrow(/out of memory: 8589934592 bytes requested/);
    engine.free(a);
    engine.free(b);
    expect(engine.memory()).toMatchObject({ bytes: 0, buffers: 0 });
    engine.alloc(20 << 20);
    expect(() => engine.upload({ buffer: a, offset: 0, bytes: 4 }, new Uint8Array(4))).toThrow(/was freed/);
  });

  it('keeps data when memory grows', () => {
    for (const threads of [1, 2]) {
      const engine = make({ threads });
      const x = put(engine, Float32Array.of(5));
      const [kernel] = engine.compile([scaleProgram(1, 1)]);
      const big = put(engine, new Float32Array(20 << 20));
      engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x, big], scalars: [2] }]);
      expect(floats(engine, { ...big, bytes: 4 })[0]).toBe(10);
    }
  });

  it.runIf(detectFeatures().memory64)('reaches beyond 4 GiB where memories have 64-bit addresses', () => {
    for (const threads of [1, 2]) {
      const engine = make({ threads, memory: 6 * 2 ** 30 });
      const low = put(engine, Float32Array.of(1, 2, 3, 4));
      const big = engine.alloc(4.5 * 2 ** 30);
      const high = { buffer: big, offset: 4.2 * 2 ** 30 - ((4.2 * 2 ** 30) % 4), bytes: 16 };
      const [kernel] = engine.compile([scaleProgram(4, 2)]);
      engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [low, high], scalars: [10] }]);
      expect([...floats(engine, high)]).toEqual([10, 21, 32, 43]);
      engine.submit([{ kind: 'copy', from: high, to: low }]);
      expect([...floats(engine, low)]).toEqual([10, 21, 32, 43]);
      engine.submit([{ kind: 'fill', to: high, pattern: 0x40000000 }]);
      expect([...floats(engine, high)]).toEqual([2, 2, 2, 2]);
      expect(() => engine.alloc(2 * 2 ** 30)).toThrow(OutOfMemoryError);
    }
  });

  it('refuses bindings outside their buffer and wrong arguments', () => {
    const engine = make({ threads: 1 });
    const x = put(engine, Float32Array.of(1, 2));
    const [kernel] = engine.compile([scaleProgram(2, 1)]);
    const bad = { ...x, offset: 4 };
    expect(() => engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [bad, x], scalars: [1] }])).toThrow(
      /outside its buffer/,
    );
    expect(() => engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x], scalars: [1] }])).toThrow(
      /takes 2 tensors and 1 scalars: got 1 and 1/,
    );
    expect(() => make({ threads: 0 })).toThrow('[cpu] bad threads: 0; must be a whole number from 1 to 64');
    expect(() => make({ threads: 65 })).toThrow('[cpu] bad threads: 65;');
    expect(() => make({ memory: -1 })).toThrow('[cpu] bad memory: -1;');
    expect(() => make({ thread: 1 } as object)).toThrow(
      "[cpu] no option 'thread', did you mean 'threads'? Known are threads, memory",
    );
    expect(() => make({ threads: 1 }).free(x.buffer)).toThrow(/another engine/);
  });

  it('threads that write neighbouring bytes of one word do not disturb each other', async () => {
    const { flush, scope, setEngine, tensor } = await import('@polygrad/core');
    const n = 200_003;
    const given = Uint16Array.from({ length: n }, (_, i) => ((i * 31) % 97) + 0x3c00);
    for (const dtype of ['int8', 'float16'] as const) {
      const results: Uint8Array[] = [];
      for (const threads of [1, 2, 3]) {
        await setEngine(make({ threads }));
        const x = scope(() => tensor(given, { dtype: dtype === 'int8' ? 'uint16' : dtype }).cast(dtype));
        for (let k = 0; k < 6; k++) {
          const y = scope(() => x.mul(x).add(x));
          flush();
          if (k === 5) {
            const { buffer, byteOffset, byteLength } = await y.data();
            results.push(new Uint8Array(buffer, byteOffset, byteLength).slice());
          }
          y.dispose();
          // Workers start between tasks.
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        x.dispose();
      }
      for (const other of results.slice(1)) expect(Buffer.compare(results[0]!, other)).toBe(0);
    }
  });

  it('refuses programs it cannot run with the program in the message', () => {
    const engine = make({ threads: 1 });
    const b = new ProgramBuilder();
    const x = b.e.param(0, 'float32', 'write', 4);
    b.store(x, 0, b.e.unary('EXP', b.load(b.e.param(1, 'float32', 'read', 4), 0)));
    expect(() => engine.compile([b.build({ name: 'bad' })])).toThrow(CompileError);
    const c = new ProgramBuilder();
    c.store(c.e.param(0, 'float16', 'write', 4), 0, c.e.constant('float16', 1));
    expect(() => engine.compile([c.build({ name: 'bad' })])).toThrow(/kernel 'bad' cannot be compiled: dtype float16/);
  });

  it('throws after dispose, which may come twice', async () => {
    const engine = make({ threads: 2 });
    const x = put(engine, Float32Array.of(1));
    engine.compile([scaleProgram(1, 1)]);
    engine.dispose();
    engine.dispose();
    expect(await engine.lost).toMatchObject({ reason: 'disposed' });
    for (const f of [
      () => engine.alloc(1),
      () => engine.submit([]),
      () => engine.compile([]),
      () => engine.upload(x, new Uint8Array(4)),
      () => engine.downloadSync(x, new Uint8Array(4)),
    ]) {
      expect(f).toThrow(EngineDisposedError);
    }
    await expect(engine.download(x, new Uint8Array(4))).rejects.toThrow(EngineDisposedError);
    engine.free(x.buffer);
  });
});
