/** Data to the card and back: in order with kernels and with each other, though they have streams of their own. */
import { afterEach, describe, expect, it } from 'vitest';
import { type CudaEngine, createCudaEngine } from './engine.ts';
import { floats, part, put } from './testing/bindings.ts';
import { hasDevice } from './testing/device.ts';

const engines: CudaEngine[] = [];
afterEach(() => {
  for (const engine of engines.splice(0)) engine.dispose();
});

function make(): CudaEngine {
  const engine = createCudaEngine();
  engines.push(engine);
  return engine;
}

describe.skipIf(!hasDevice())('data to the card and back', () => {
  it('uploads what the source held when upload was called', () => {
    const engine = make();
    for (const n of [3, 1000, 300_000]) {
      const data = Float32Array.from({ length: n }, (_, i) => i % 1000);
      const x = put(engine, data);
      data.fill(-1);
      const got = floats(engine, x);
      expect([got[0], got[2], got[n - 1]]).toEqual([0, 2, (n - 1) % 1000]);
      engine.free(x.buffer);
    }
  });

  it('keeps what is uploaded in order with commands, small and large', async () => {
    const engine = make();
    for (const n of [4, 200_000]) {
      const x = put(engine, new Float32Array(n).fill(1));
      const y = { buffer: engine.alloc(4 * n), offset: 0, bytes: 4 * n };
      const reads: Promise<number>[] = [];
      for (let i = 0; i < 10; i++) {
        engine.submit([{ kind: 'copy', from: x, to: y }]);
        // Behind the copy, though the copy may not have begun.
        engine.upload(x, new Float32Array(n).fill(i + 2));
        const last = part(y, 4 * (n - 1), 4);
        reads.push(engine.download(last, new Uint8Array(4)).then((b) => new Float32Array(b.buffer)[0] as number));
      }
      expect(await Promise.all(reads)).toEqual(Array.from({ length: 10 }, (_, i) => i + 1));
    }
  });

  it('reads into the start of a larger array, and from the middle of a buffer', async () => {
    const engine = make();
    const x = put(engine, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    const into = new Uint8Array(6);
    expect(await engine.download(part(x, 2, 4), into)).toBe(into);
    expect([...into]).toEqual([3, 4, 5, 6, 0, 0]);
  });

  it('moves 64 MiB both ways', async () => {
    const engine = make();
    const data = new Uint32Array(1 << 24);
    for (let i = 0; i < data.length; i++) data[i] = Math.imul(i, 2654435761);
    const x = put(engine, data);
    for (const got of [
      await engine.download(x, new Uint8Array(x.bytes)),
      engine.downloadSync(x, new Uint8Array(x.bytes)),
    ])
      expect(Buffer.compare(got, new Uint8Array(data.buffer))).toBe(0);
  });
});
