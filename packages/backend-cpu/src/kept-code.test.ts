/** Code kept between processes: what an engine gives of a kernel another one takes in the place of emitting it. */
import { flush, getEngine, idle, scope, setEngine, softmax, stats, tensor } from '@polygrad/core';
import type { KeptCode } from '@polygrad/core/engine';
import { type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { type PlanStore, type StoredEntry, usePlanCache } from '@polygrad/core/plans';
import { afterEach, describe, expect, it } from 'vitest';
import { type CpuEngine, createCpuEngine } from './engine.ts';

/** `out[0] = value`. */
function program(value: number): Program {
  const b = new ProgramBuilder();
  b.store(b.e.param(0, 'float32', 'write', 1), b.e.i32(0), b.e.f32(value));
  return b.build({ name: 'one' });
}

function run(engine: CpuEngine, value: number, code: KeptCode | null): number {
  const [kernel] = engine.compile([{ ...program(value), kept: code }]);
  const buffer = engine.alloc(4);
  const binding = { buffer, offset: 0, bytes: 4 };
  engine.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [binding], scalars: [] }]);
  const [found] = new Float32Array(engine.downloadSync(binding, new Uint8Array(4)).buffer);
  engine.free(buffer);
  engine.release([kernel!]);
  return found!;
}

describe('code of a kernel', () => {
  it('is taken by another engine in the place of emitting it', () => {
    const [first, second] = [createCpuEngine({ threads: 1 }), createCpuEngine({ threads: 1 })];
    expect(second.codeKey).toBe(first.codeKey);
    const [kernel] = first.compile([program(3)]);
    const code = first.codeOf(kernel!);
    expect(run(second, 3, code)).toBe(3);
    // What runs is the code, not the program.
    expect(run(second, 4, code)).toBe(3);
    expect(run(second, 4, null)).toBe(4);
    first.dispose();
    second.dispose();
  });

  it('that is none is refused, and leaves nothing behind', () => {
    const engine = createCpuEngine({ threads: 1 });
    const [kernel] = engine.compile([program(3)]);
    const code = engine.codeOf(kernel!);
    for (const bad of [{}, { ...code, code: Uint8Array.of(0xff) }, { ...code, params: [1] }])
      expect(() => engine.compile([{ ...program(5), kept: bad as KeptCode }])).toThrow();
    expect(run(engine, 5, null)).toBe(5);
    engine.dispose();
  });
});

/** Entries in memory. */
class MemoryPlans implements PlanStore {
  readonly files = new Map<string, Uint8Array<ArrayBuffer>>();
  async load(prefix: string): Promise<readonly StoredEntry[]> {
    return [...this.files].flatMap(([name, bytes]) => (name.startsWith(prefix) ? [{ name, bytes }] : []));
  }
  async save(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    this.files.set(name, bytes);
  }
  async remove(name: string): Promise<void> {
    this.files.delete(name);
  }
}

describe('plans kept between engines', () => {
  afterEach(() => getEngine().dispose());

  const x = Float32Array.from({ length: 96 }, (_, i) => Math.sin(i));
  /** Values and counts of a new engine with these plans, and the modules it compiled. */
  async function visit(store: PlanStore, threads: number) {
    const { Module } = WebAssembly;
    const modules: Uint8Array[] = [];
    WebAssembly.Module = new Proxy(Module, {
      construct(target, [bytes]: [Uint8Array<ArrayBuffer>]) {
        modules.push(bytes);
        return new target(bytes);
      },
    });
    try {
      await setEngine(createCpuEngine({ threads }));
      const plans = await usePlanCache({ store, version: 'test' });
      const results = scope(() => {
        const rows = tensor(x, { shape: [12, 8] });
        return [softmax(rows.matmul(rows.transpose())), rows.cast('int8').cumSum(0), rows.sort(1)] as const;
      });
      flush();
      const values = await Promise.all(results.map(async (t) => Array.from((await t.data()) as ArrayLike<number>)));
      for (const t of results) t.dispose();
      await idle();
      await plans.saved();
      plans.stop();
      return { values, modules, loaded: stats().plansLoaded, made: stats().plansMade };
    } finally {
      WebAssembly.Module = Module;
    }
  }

  it('have the same modules and bits, and none for another number of threads', async () => {
    const store = new MemoryPlans();
    const first = await visit(store, 1);
    expect(first).toMatchObject({ loaded: 0, made: store.files.size });
    expect(await visit(store, 1)).toEqual({ ...first, loaded: first.made, made: 0 });
    expect(await visit(store, 2)).toMatchObject({ loaded: 0, made: first.made, values: first.values });
  });
});
