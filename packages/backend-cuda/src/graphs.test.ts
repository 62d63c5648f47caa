/** Batches that come again are one launch of a graph, with the same results; where the driver has none, or fails, kernel by kernel. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { floats, put } from '@polygrad/addon/fixtures/bindings';
import type { Binding, Command, CompiledKernel } from '@polygrad/core/engine';
import { type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { createCudaEngine, type CudaEngine } from './engine.ts';
import { hasDevice, hasSimulator, simulator } from './fixtures/device.ts';
import { ask } from './fixtures/process.ts';

/** y[i] = x[i] * s + t, one group per element. */
function stepProgram(n: number, name = 'step'): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const [x, y] = [e.param(0, 'float32', 'read', n), e.param(1, 'float32', 'write', n)];
  const at = e.special('group', 0, n);
  b.store(y, at, e.add(e.mul(b.load(x, at), e.scalar(0, 'float32')), e.scalar(1, 'float32')));
  return b.build({ name, grid: [n, 1, 1] });
}

const step = (kernel: CompiledKernel, x: Binding, y: Binding, s: number, t: number): Command => ({
  kind: 'dispatch',
  kernel,
  bindings: [x, y],
  scalars: [s, t],
});

describe.skipIf(!hasDevice())('graphs', () => {
  const engines: CudaEngine[] = [];
  const made = (options = {}): CudaEngine => {
    const engine = createCudaEngine(options);
    engines.push(engine);
    return engine;
  };

  it('launch a batch as one from the third time on, and follow bindings and scalars', () => {
    const run = (engine: CudaEngine): number[][] => {
      const [x, y, z] = [1, 2, 3].map((i) => put(engine, Float32Array.of(i, 2 * i))) as [Binding, Binding, Binding];
      const [kernel] = engine.compile([stepProgram(2)]) as [CompiledKernel];
      const seen: number[][] = [];
      for (let i = 0; i < 8; i++) {
        // Every other time with another buffer, and each time with another scalar.
        const to = i % 2 === 0 ? y : z;
        engine.submit([
          step(kernel, x, to, i + 1, 1),
          step(kernel, to, x, 1, -1),
          step(kernel, x, to, 0.5, 0),
          step(kernel, to, x, 1, i),
        ]);
        seen.push(floats(engine, x), floats(engine, y), floats(engine, z));
        // An upload between batches is in order with them.
        engine.upload(x, Float32Array.of(i, 1));
      }
      engine.release([kernel]);
      return seen;
    };
    const [engine, other] = [made(), made({ graphs: false })];
    expect(run(engine)).toEqual(run(other));
    const { graphs, graphsMade, graphsUpdated, batches } = engine.stats;
    expect([graphs, graphsMade, batches]).toEqual([6, 1, 8]);
    // Both ends of a batch change with the scalar, all of it with the buffer.
    expect(graphsUpdated).toBe(5 * 4);
    expect([engine.graphsMissing, other.graphsMissing]).toEqual([null, 'the option graphs is false']);
    expect(other.stats).toMatchObject({ graphs: 0, graphsMade: 0, batches: 8 });
    for (const e of engines.splice(0)) e.dispose();
    expect(engine.stats.graphs).toBe(6);
  });

  it('go with their kernels, even where they run', () => {
    const engine = made();
    const [x, y] = [put(engine, new Float32Array(2)), put(engine, new Float32Array(2))];
    for (let round = 0; round < 4; round++) {
      const [kernel] = engine.compile([stepProgram(2, `step${round % 2}`)]) as [CompiledKernel];
      for (let i = 0; i < 4; i++)
        engine.submit([
          step(kernel, x, y, 1, 1),
          step(kernel, y, x, 1, 1),
          step(kernel, x, y, 1, 1),
          step(kernel, y, x, 1, 1),
        ]);
      engine.release([kernel]);
    }
    expect(floats(engine, x)).toEqual([64, 64]);
    expect(engine.stats).toMatchObject({ graphs: 8, graphsMade: 4 });
    for (const e of engines.splice(0)) e.dispose();
  });

  it('are not made of batches with anything but kernels, and keep many', () => {
    const engine = made();
    const [x, y] = [put(engine, new Float32Array(2)), put(engine, new Float32Array(2))];
    const kernels = engine.compile([stepProgram(2), stepProgram(2, 'other')]) as [CompiledKernel, CompiledKernel];
    const batch = (bits: number): Command[] =>
      Array.from({ length: 8 }, (_, i) =>
        step(kernels[(bits >> i) & 1]!, i % 2 === 0 ? x : y, i % 2 === 0 ? y : x, 1, 1),
      );
    for (let i = 0; i < 4; i++) engine.submit([...batch(0), { kind: 'fill', to: y, pattern: 0 }]);
    expect(engine.stats.graphs).toBe(0);
    // More than are kept, then some again.
    for (let turn = 0; turn < 3; turn++) for (let bits = 0; bits < 100; bits++) engine.submit(batch(bits));
    for (let turn = 0; turn < 4; turn++) engine.submit(batch(7));
    expect(engine.stats.graphs).toBeGreaterThan(0);
    // Eight more with each of 308 batches.
    expect(floats(engine, x)).toEqual([2464, 2464]);
    for (const e of engines.splice(0)) e.dispose();
  });
});

describe.skipIf(!hasSimulator())('a driver', () => {
  const program = `
    const list = Array.from({ length: 64 }, (_, i) => ((i * 7) % 23) / 23 - 0.4);
    const loss = (v) => core.mean(core.square(core.sub(core.matmul(core.tanh(core.matmul(v, v)), v), 0.5)));
    const train = async ({ plan = '', from = 0 }) => {
      const engine = cuda.createCudaEngine({ tuning: false });
      await core.setEngine(engine);
      let w = core.tensor(list, { shape: [8, 8] });
      for (let i = 0; i < 8; i++) {
        if (i === from) process.env.POLYGRAD_CUDA_SIM_FAIL = plan;
        const next = core.scope(() => core.sub(w, core.mul(core.grads(loss)(w)[0], 0.1)));
        await next.data();
        w.dispose();
        w = next;
      }
      process.env.POLYGRAD_CUDA_SIM_FAIL = '';
      const said = [await w.array(), engine.stats.graphs, engine.graphsMissing];
      w.dispose();
      engine.dispose();
      return said;
    };
    const said = [];
    for (const failure of FAILURES) said.push(await train(failure).catch((error) => [error.name, error.driverCode, error.message]));
    say(said);`;
  type Said = [number[][] | string, number, string | null];
  /** `plan`: failures from the step `from` on; the graph is made in the third. */
  const run = (
    failures: readonly { plan?: string; from?: number }[],
    settings = '',
    driver = simulator ?? '',
  ): Said[] =>
    ask(program.replace('FAILURES', JSON.stringify(failures)), {
      POLYGRAD_CUDA_DRIVER: driver,
      POLYGRAD_CUDA_SIM: settings,
    });

  it('without graphs, or that fails at any call of theirs, computes the same', () => {
    const plans = [
      { plan: 'cuGraphAddKernelNode@1+=2', from: 0 },
      { plan: 'cuGraphInstantiate@1+=2', from: 0 },
      { plan: 'cuGraphLaunch@1+=2', from: 5 },
      { plan: 'cuGraphExecKernelNodeSetParams@1+=2', from: 4 },
    ];
    const [right, ...others] = run([{}, ...plans, { plan: 'cuGraphLaunch@1=719', from: 5 }]);
    const [values, graphs] = right as Said;
    // One launch a step from the third on.
    expect(graphs).toBe(6);
    const fault = others.pop();
    for (const [i, said] of others.entries()) {
      const why = 'the driver says CUDA_ERROR_OUT_OF_MEMORY (2)';
      expect(said, plans[i]?.plan).toEqual([values, expect.any(Number), why]);
      expect(said[1] < graphs).toBe(true);
    }
    // A fault is a fault.
    expect(fault).toEqual(['DeviceLostError', 719, expect.stringContaining('CUDA_ERROR_LAUNCH_FAILED (719)')]);
    expect(run([{}], 'graphs=0')).toEqual([[values, 0, 'the driver says CUDA_ERROR_NOT_SUPPORTED (801)']]);
  });

  it.skipIf(process.platform !== 'linux')('that lacks their functions computes the same', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-graphs-'));
    try {
      const driver = join(folder, 'libcuda-old.so');
      // The name in the table of symbols: nobody finds it any more.
      const bytes = readFileSync(simulator as string);
      const name = Buffer.from('\0cuGraphLaunch\0');
      for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + 1)) bytes[at + 1] = 'x'.charCodeAt(0);
      writeFileSync(driver, bytes);
      expect(run([{}], '', driver)).toEqual([[run([{}])[0]?.[0], 0, 'the driver has none']]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
