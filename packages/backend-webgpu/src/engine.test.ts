import { type Binding, CompileError, EngineDisposedError, OutOfMemoryError } from '@polygrad/core/engine';
import { ProgramBuilder } from '@polygrad/core/kernel';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { WebGpuEngine } from './gpu-engine.ts';
import { testEngine } from './fixtures/device.ts';
import { appendProgram, bytesOf, floatsOf, put, scaleProgram } from './fixtures/programs.ts';

const engine = (await testEngine()) as WebGpuEngine;
const others: WebGpuEngine[] = [];
async function another(options: Parameters<typeof testEngine>[0] = {}): Promise<WebGpuEngine> {
  const made = (await testEngine(options)) as WebGpuEngine;
  others.push(made);
  return made;
}
afterEach(() => {
  for (const e of others.splice(0)) e.dispose();
});
afterAll(() => engine?.dispose());

const word = (bytes: Uint8Array): number => new Uint32Array(bytes.buffer)[0] as number;

describe.skipIf(engine === null)('WebGpuEngine', () => {
  it('names its device and tells hardware from software', () => {
    expect(engine.device).toMatch(/\w{3}/);
    expect(engine.caps.simt).toBe(true);
    expect(engine.caps.maxBindings).toBeGreaterThanOrEqual(8);
    if (/llvmpipe|swiftshader/i.test(engine.device)) expect(engine.software).toBe(true);
  });

  it('uploads, runs and downloads', async () => {
    const x = put(engine, Float32Array.of(1, 2, 3, 4));
    const out = put(engine, new Float32Array(4));
    const [kernel] = engine.compile([scaleProgram(4, 2)]);
    engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x, out], scalars: [10] }]);
    expect([...(await floatsOf(engine, out))]).toEqual([10, 21, 32, 43]);
    expect([...(await floatsOf(engine, { ...out, offset: 4, bytes: 8 }))]).toEqual([21, 32]);
    await engine.idle();
  });

  it('submits no dispatch of no groups where a cut kernel ends early', async () => {
    const program = scaleProgram(4, 1, 1e13);
    const [kernel] = engine.compile([program]);
    const x = put(engine, Float32Array.of(1, 2, 3, 4));
    const out = put(engine, new Float32Array(4));
    await engine.ready();
    const run = async (groups: readonly [number, number, number] | null): Promise<number> => {
      const before = engine.traffic.dispatches;
      engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x, out], scalars: [10], groups }]);
      await engine.idle();
      return engine.traffic.dispatches - before;
    };
    expect([await run(null), await run([3, 1, 1]), await run([1, 1, 1])]).toEqual([4, 3, 1]);
    expect([...(await floatsOf(engine, out))]).toEqual([10, 21, 32, 43]);
  });

  it('moves bytes at any place, and changes no others', async () => {
    const whole = put(
      engine,
      Uint8Array.from({ length: 24 }, (_, i) => i),
    );
    for (const [offset, bytes] of [
      [5, 2],
      [9, 6],
      [16, 3],
      [21, 3],
    ] as const)
      engine.upload({ ...whole, offset, bytes }, new Uint8Array(bytes).fill(200 + offset));
    const expected = [
      0, 1, 2, 3, 4, 205, 205, 7, 8, 209, 209, 209, 209, 209, 209, 15, 216, 216, 216, 19, 20, 221, 221, 221,
    ];
    expect([...(await bytesOf(engine, whole))]).toEqual(expected);
    expect([...(await bytesOf(engine, { ...whole, offset: 5, bytes: 4 }))]).toEqual([205, 205, 7, 8]);
    expect([...(await bytesOf(engine, { ...whole, offset: 3, bytes: 0 }))]).toEqual([]);
  });

  it('uploads a lot, more than the mapped buffers hold, in order with small uploads and reads', async () => {
    const e = await another();
    const words = 6 << 20; // 24 MiB
    const data = put(e, new Uint32Array(words));
    for (let round = 1; round <= 3; round++) {
      const source = new Uint32Array(words).fill(round);
      e.upload(data, source);
      source.fill(99); // the source may change right after
      e.upload({ ...data, offset: 4, bytes: 4 }, Uint32Array.of(100 + round));
      const got = new Uint32Array((await bytesOf(e, data)).buffer);
      expect([got[0], got[1], got[2]]).toEqual([round, 100 + round, round]);
      expect(got.every((x, i) => i === 1 || x === round)).toBe(true);
    }
    // Not at a whole word: both ends are patched.
    const odd = new Uint8Array(5 << 20).fill(7);
    e.upload({ ...data, offset: 9, bytes: odd.length }, odd);
    const bytes = await bytesOf(e, { ...data, offset: 0, bytes: odd.length + 12 });
    expect([bytes[8], bytes[9], bytes[odd.length + 8], bytes[odd.length + 9]]).toEqual([3, 7, 7, 0]);
  });

  it('copies and fills, also inside one buffer', async () => {
    const a = put(engine, Uint32Array.of(1, 2, 3, 4, 5, 6));
    const b = put(engine, new Uint32Array(6));
    engine.submit([
      { kind: 'fill', to: { ...b, offset: 8, bytes: 16 }, pattern: 0xdeadbeef },
      { kind: 'copy', from: { ...a, offset: 4, bytes: 8 }, to: { ...b, offset: 0, bytes: 8 } },
      { kind: 'fill', to: { ...b, offset: 12, bytes: 4 }, pattern: 0 },
      { kind: 'copy', from: { ...a, offset: 0, bytes: 12 }, to: { ...a, offset: 8, bytes: 12 } },
    ]);
    expect([...new Uint32Array((await bytesOf(engine, b)).buffer)]).toEqual([
      2, 3, 0xdeadbeef, 0, 0xdeadbeef, 0xdeadbeef,
    ]);
    expect([...new Uint32Array((await bytesOf(engine, a)).buffer)]).toEqual([1, 2, 1, 2, 3, 6]);
    expect(() => engine.submit([{ kind: 'fill', to: { ...b, offset: 0, bytes: 6 }, pattern: 1 }])).toThrow(
      /four bytes/,
    );
  });

  it('keeps the order of kernels, uploads and copies', async () => {
    const data = put(engine, new Uint32Array(1));
    const kept = put(engine, new Uint32Array(1));
    const [kernel] = engine.compile([appendProgram()]);
    const append = (bit: number) => ({ kind: 'dispatch', kernel: kernel!, bindings: [data], scalars: [bit] }) as const;
    engine.submit([append(1), append(0), { kind: 'copy', from: data, to: kept }, append(1)]);
    const early = bytesOf(engine, data);
    engine.upload(data, Uint32Array.of(1));
    engine.submit([append(1)]);
    engine.submit([append(0)]);
    expect(word(await bytesOf(engine, data))).toBe(0b110);
    expect(word(await early)).toBe(0b101);
    expect(word(await bytesOf(engine, kept))).toBe(0b10);
  });

  it('keeps the order while pipelines are still being made', async () => {
    const e = await another();
    const data = put(e, new Uint32Array(1));
    const reads: Promise<Uint8Array>[] = [];
    let expected = 0;
    for (let i = 0; i < 12; i++) {
      // A new name is a new text.
      const [kernel] = e.compile([appendProgram(`append_${i}_${Math.random().toString(36).slice(2)}`)]);
      e.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [data], scalars: [i % 2] }]);
      expected = (expected * 2 + (i % 2)) >>> 0;
      if (i === 6) {
        const source = Uint32Array.of(5);
        e.upload(data, source);
        source[0] = 99; // the source may change right after
        expected = 5;
      }
      const extra = put(e, Uint32Array.of(i));
      reads.push(bytesOf(e, extra));
      e.free(extra.buffer);
    }
    expect(e.waiting.batches).toBeGreaterThan(0);
    expect(word(await bytesOf(e, data))).toBe(expected);
    expect((await Promise.all(reads)).map(word)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(e.waiting).toEqual({ pipelines: 0, batches: 0 });
    expect(e.memory().buffers).toBe(1);
  });

  it('goes on without a single await: what waits too long is compiled at once', async () => {
    const e = await another();
    const data = put(e, new Uint32Array(1));
    const [kernel] = e.compile([appendProgram(`sync_${Math.random().toString(36).slice(2)}`)]);
    let most = 0;
    for (let i = 0; i < 3000; i++) {
      e.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [data], scalars: [i & 1] }]);
      most = Math.max(most, e.waiting.batches);
    }
    expect(most).toBeLessThanOrEqual(257);
    expect(e.waiting.batches).toBe(0);
    expect(word(await bytesOf(e, data))).toBe(0x55555555);
  });

  it('gives every dispatch its own numbers, however many there are', async () => {
    const count = 4096; // more than the uniform ring holds
    const out = put(engine, new Uint32Array(count));
    const b = new ProgramBuilder();
    const target = b.e.param(0, 'uint32', 'write', count);
    b.store(target, b.e.scalar(0, 'int32'), b.e.scalar(1, 'uint32'));
    const [kernel] = engine.compile([b.build({ name: 'place' })]);
    const commands = Array.from({ length: count }, (_, i) => ({
      kind: 'dispatch' as const,
      kernel: kernel!,
      bindings: [out],
      scalars: [i, (i * 2654435761) >>> 0],
    }));
    const before = engine.traffic.submissions;
    engine.submit(commands);
    expect(engine.traffic.submissions - before).toBeLessThan(8);
    const got = new Uint32Array((await bytesOf(engine, out)).buffer);
    expect(got.findIndex((x, i) => x !== (i * 2654435761) >>> 0)).toBe(-1);
  });

  it('runs a batch of kernels as one pass of one submission', async () => {
    const data = put(engine, new Uint32Array(1));
    const [kernel] = engine.compile([appendProgram()]);
    await engine.idle();
    const { submissions, passes, dispatches } = { ...engine.traffic };
    engine.submit(
      Array.from({ length: 20 }, () => ({
        kind: 'dispatch' as const,
        kernel: kernel!,
        bindings: [data],
        scalars: [1],
      })),
    );
    await engine.idle();
    expect(engine.traffic).toEqual({ submissions: submissions + 1, passes: passes + 1, dispatches: dispatches + 20 });
  });

  it('shares the pipeline of equal programs and counts their users', async () => {
    const e = await another();
    const [a, b] = e.compile([scaleProgram(8, 4), scaleProgram(8, 4)]);
    expect(e.waiting.pipelines).toBe(1);
    e.release([a!, a!]);
    const [x, out] = [put(e, new Float32Array(8)), put(e, new Float32Array(8))];
    e.submit([{ kind: 'dispatch', kernel: b!, bindings: [x, out], scalars: [1] }]);
    expect([...(await floatsOf(e, out))]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('reads many results at a time', async () => {
    const buffers = Array.from({ length: 40 }, (_, i) => put(engine, new Uint32Array(1 + i * 37).fill(i)));
    const results = await Promise.all(buffers.map((b) => bytesOf(engine, b)));
    results.forEach((bytes, i) => {
      const words = new Uint32Array(bytes.buffer);
      expect(words.length).toBe(1 + i * 37);
      expect(words.every((w) => w === i)).toBe(true);
    });
    for (const { buffer } of buffers) engine.free(buffer);
  });

  it('measures every command of a batch, and shows what a kernel was made into', async () => {
    const e = await another();
    if (e.submitTimed === undefined) return;
    const data = put(e, new Uint32Array(2));
    const [kernel] = e.compile([appendProgram('timed')]);
    const run = { kind: 'dispatch', kernel: kernel!, bindings: [{ ...data, bytes: 4 }], scalars: [1] } as const;
    const times = await e.submitTimed([run, { kind: 'fill', to: { ...data, bytes: 4 }, pattern: 0 }, run, run]);
    expect(times.map((t) => Number.isNaN(t))).toEqual([false, true, false, false]);
    expect(word(await bytesOf(e, data))).toBe(3);
    const { language, text } = await e.source(kernel!);
    expect(language).toBe('wgsl');
    expect(text).toContain('@compute');
  });

  it('refuses what the device cannot hold, with the numbers', async () => {
    const { maxBufferBytes } = engine.caps;
    expect(() => engine.alloc(maxBufferBytes + 4)).toThrow(OutOfMemoryError);
    expect(() => engine.alloc(maxBufferBytes + 4)).toThrow(`${maxBufferBytes + 4} bytes requested`);
    const e = await another({ memory: 1 << 20 });
    const first = e.alloc(1 << 19);
    expect(() => e.alloc((1 << 19) + 4)).toThrow(/524292 bytes requested with 524288 bytes live .* of at most 1048576/);
    e.free(first);
    e.alloc(1 << 20);
    expect(e.memory()).toEqual({ bytes: 1 << 20, buffers: 1, reservedBytes: 1 << 20 });
  });

  it('refuses wrong arguments before anything is sent', async () => {
    const e = await another();
    const [kernel] = engine.compile([scaleProgram(4, 2)]);
    const x = put(engine, new Float32Array(64));
    const run =
      (bindings: Binding[], scalars: number[] = [1]) =>
      () =>
        engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings, scalars }]);
    expect(run([x])).toThrow(/takes 2 tensors and 1 scalars: got 1 and 1/);
    expect(run([x, x], [])).toThrow(/got 2 and 0/);
    expect(run([x, { ...x, offset: 4, bytes: 16 }])).toThrow(`no multiple of ${engine.caps.bindAlign}`);
    expect(run([x, { ...x, offset: 256, bytes: 16 }])).toThrow(/offset 256 and 16 bytes of 256/);
    expect(run([x, put(e, new Float32Array(4))])).toThrow(/belongs to another engine/);
    const gone = put(engine, new Float32Array(4));
    engine.free(gone.buffer);
    expect(run([x, gone])).toThrow(/was freed/);
    await expect(engine.download(gone, new Uint8Array(16))).rejects.toThrow(/was freed/);
    await expect(engine.download(x, new Uint8Array(4))).rejects.toThrow(/do not fit/);
  });

  it('refuses kernels that bind too much, naming both numbers', async () => {
    const e = await another({ maxBindings: 4 });
    const b = new ProgramBuilder();
    for (let slot = 0; slot < 5; slot++)
      b.store(b.e.param(slot, 'uint32', 'write', 1), 0, b.e.constant('uint32', slot));
    const program = b.build({ name: 'wide' });
    expect(() => e.compile([program])).toThrow(CompileError);
    expect(() => e.compile([program])).toThrow(/5 tensors are more than the 4/);
  });

  it('says the values of options it refuses', async () => {
    await expect(testEngine({ memory: -1 })).rejects.toThrow(
      '[createWebGpuEngine] bad memory: -1; must be a number from 1',
    );
    await expect(testEngine({ maxBindings: 2 })).rejects.toThrow('bad maxBindings: 2');
    await expect(testEngine({ subgroups: 8 as never })).rejects.toThrow('bad subgroups: 8; must be true or false');
    await expect(testEngine({ powerPreference: 'most' as 'low-power' })).rejects.toThrow(
      "bad powerPreference: 'most'; must be 'high-performance' or 'low-power'",
    );
  });

  it('refuses options it does not know', async () => {
    await expect(testEngine({ powerPreferense: 'low-power' } as object)).rejects.toThrow(
      "[createWebGpuEngine] no option 'powerPreferense', did you mean 'powerPreference'? Known are powerPreference, ",
    );
  });

  it('tells of compilation', async () => {
    const told: { done: number; total: number }[] = [];
    const e = await another({ onCompile: ({ done, total }) => told.push({ done, total }) });
    const stamp = Math.random().toString(36).slice(2);
    e.compile([appendProgram(`one_${stamp}`), appendProgram(`two_${stamp}`)]);
    await e.idle();
    while (e.waiting.pipelines > 0) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(told).toEqual([
      { done: 0, total: 1 },
      { done: 0, total: 2 },
      { done: 1, total: 2 },
      { done: 2, total: 2 },
    ]);
  });

  it('says after dispose what was asked of it', async () => {
    const e = await another();
    const x = put(e, new Float32Array(4));
    e.dispose();
    e.dispose();
    expect((await e.lost).reason).toBe('disposed');
    expect(() => e.alloc(4)).toThrow(EngineDisposedError);
    expect(() => e.upload(x, new Float32Array(4))).toThrow(/upload was asked/);
    await expect(bytesOf(e, x)).rejects.toThrow(EngineDisposedError);
    await expect(e.idle()).rejects.toThrow(EngineDisposedError);
    e.free(x.buffer);
    expect(e.memory()).toEqual({ bytes: 0, buffers: 0, reservedBytes: 0 });
  });
});
