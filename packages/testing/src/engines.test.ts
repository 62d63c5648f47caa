import { describe, expect, it } from 'vitest';
import type { Binding, EngineBuffer } from '@polygrad/core/engine';
import { CompileError, EngineDisposedError, UnsupportedError } from '@polygrad/core';
import { BASE_OPS, type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { createNullEngine } from './null-engine.ts';
import { createReferenceEngine } from './reference-engine.ts';

function whole(buffer: EngineBuffer): Binding {
  return { buffer, offset: 0, bytes: buffer.bytes };
}

/** Multiplies `count` numbers by a scalar. */
function scale(count: number): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const [x, y] = [e.param(0, 'float32', 'read', count), e.param(1, 'float32', 'write', count)];
  b.loop(count, (i) => b.store(y, i, e.mul(b.load(x, i), e.scalar(0, 'float32'))));
  return b.build({ name: 'scale' });
}

describe('reference engine', () => {
  it('uploads, dispatches, copies, fills and downloads in order', async () => {
    const engine = createReferenceEngine();
    const [a, b] = [engine.alloc(16), engine.alloc(32)];
    const input = new Float32Array([1, 2, 3, 4]);
    engine.upload(whole(a), input);
    input.fill(0);
    const [kernel] = engine.compile([scale(4)]);
    const upper: Binding = { buffer: b, offset: 16, bytes: 16 };
    engine.submit([
      { kind: 'fill', to: whole(b), pattern: 0x3f800000 },
      { kind: 'dispatch', kernel: kernel!, bindings: [whole(a), upper], scalars: [10] },
      { kind: 'copy', from: { buffer: b, offset: 24, bytes: 8 }, to: { buffer: b, offset: 0, bytes: 8 } },
    ]);
    const into = new Uint8Array(32);
    expect(await engine.download(whole(b), into)).toBe(into);
    expect([...new Float32Array(into.buffer)]).toEqual([30, 40, 1, 1, 10, 20, 30, 40]);
    expect([...new Float32Array(engine.downloadSync!(whole(a), new Uint8Array(16)).buffer)]).toEqual([1, 2, 3, 4]);
  });

  it('decomposes everything but the base operations, unless asked otherwise', () => {
    expect(createReferenceEngine().caps.nativeOps.size).toBe(0);
    const native = createReferenceEngine({ nativeFunctions: true }).caps.nativeOps;
    expect(native.has('EXP') && native.has('FMA')).toBe(true);
    expect([...native].filter((op) => BASE_OPS.has(op))).toEqual([]);
    const simt = createReferenceEngine({ simt: true, maxGroup: 64 }).caps;
    expect([simt.simt, simt.maxGroup]).toEqual([true, 64]);
    expect(createReferenceEngine().caps.maxGroup).toBe(1);
  });

  it('refuses programs that break the rules, with their text', () => {
    const program = scale(4);
    const broken = { ...program, body: program.body.filter((n) => n.op !== 'MUL') };
    const engine = createReferenceEngine();
    expect(() => engine.compile([broken])).toThrow(CompileError);
    expect(() => engine.compile([broken])).toThrow(
      /kernel 'scale' cannot be compiled: .*not defined[\s\S]*program scale/,
    );
  });

  it('finds uses of memory that is gone and bindings that leave it', () => {
    const engine = createReferenceEngine();
    const buffer = engine.alloc(8);
    expect(() => engine.upload({ buffer, offset: 4, bytes: 8 }, new Uint8Array(8))).toThrow(
      /8 bytes at 4 leaves its buffer of 8/,
    );
    expect(engine.memory()).toEqual({ bytes: 8, buffers: 1, reservedBytes: 8 });
    engine.free(buffer);
    expect(engine.memory().buffers).toBe(0);
    expect(() => engine.free(buffer)).toThrow(/freed twice/);
    expect(() => engine.upload(whole(buffer), new Uint8Array(8))).toThrow(/used after it was freed/);
    expect(() => createReferenceEngine().free(createNullEngine().alloc(4))).not.toThrow();
    expect(() => engine.free({ bytes: 8 })).toThrow(/belongs to another engine/);
  });

  it('ends once', async () => {
    const engine = createReferenceEngine();
    engine.dispose();
    engine.dispose();
    expect((await engine.lost).reason).toBe('disposed');
    expect(() => engine.alloc(8)).toThrow(EngineDisposedError);
    expect(() => engine.submit([])).toThrow(/submit was asked of an engine that is disposed/);
  });
});

describe('null engine', () => {
  it('counts kernels, dispatches and bytes, and knows the peak', async () => {
    const engine = createNullEngine({ simt: true, maxGroup: 128 });
    expect([engine.caps.simt, engine.caps.maxGroup]).toEqual([true, 128]);
    const [a, b] = [engine.alloc(16), engine.alloc(16)];
    const kernels = engine.compile([scale(4)]);
    const command = { kind: 'dispatch', kernel: kernels[0]!, bindings: [whole(a), whole(b)], scalars: [1] } as const;
    engine.submit([command, command]);
    engine.free(a);
    expect(engine.memory().bytes).toBe(16);
    expect(engine.counts()).toEqual({
      compiled: 1,
      dispatches: 2,
      submits: 1,
      kernels: ['scale', 'scale'],
      peakBytes: 32,
    });
    engine.reset();
    expect(engine.counts()).toEqual({ compiled: 0, dispatches: 0, submits: 0, kernels: [], peakBytes: 16 });
    await expect(engine.download(whole(b), new Uint8Array(16))).rejects.toThrow(UnsupportedError);
    expect(() => engine.downloadSync!(whole(b), new Uint8Array(16))).toThrow(/use the reference engine to see values/);
    expect(() => engine.submit([command])).toThrow(/used after it was freed/);
  });
});
