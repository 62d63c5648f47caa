/** Machine code touches nothing outside of its memory: whoever does ends the process. A part of the programs of guards.long.test.ts. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { faultyAddon } from './fixtures/faults.ts';
import { ProgramBuilder } from '@polygrad/core/kernel';
import { createNativeEngine } from './create.ts';
import { GuardedMemory } from './fixtures/guards.ts';
import { guardedDifferences } from './fixtures/guarded-programs.ts';
import { targets } from './testing/targets.ts';

it.skipIf(targets().length === 0)('who touches a closed page ends the process', () => {
  const script = `
    const addon = require(${JSON.stringify(faultyAddon())});
    const engine = addon.create(new Uint8Array(new SharedArrayBuffer(8192, { maxByteLength: 8192 })), 1);
    addon.submit(engine, Float64Array.of(2, 4096, 4096, 0), 4);
    addon.closePages(engine, 4096, 4096, 1);
    addon.submit(engine, Float64Array.of(2, 4088, 8, 0), 4);
    if (process.env.TOUCH) addon.submit(engine, Float64Array.of(2, 4088, 12, 0), 4);`;
  const signalOf = (env: Record<string, string>): string | null =>
    spawnSync(process.execPath, ['-e', script], { env: { ...process.env, ...env } }).signal;
  expect(signalOf({})).toBeNull();
  expect(signalOf({ TOUCH: '1' })).toBe('SIGSEGV');
});

const seeds = Array.from({ length: 12 }, (_, i) => 1001 + i);

it.each(targets())('%s, vectors of %i bytes', (isa, vectorBytes) => {
  expect(guardedDifferences({ isa, vectorBytes }, seeds)).toEqual([]);
});

it.each(targets())('%s, vectors of %i bytes, stored past the caches from any start', (isa, vectorBytes) => {
  const lanes = vectorBytes / 4;
  const engine = createNativeEngine({ threads: 1, isa, vectorBytes });
  const memory = new GuardedMemory();
  const target = { isa, vectorBytes, sharedBytes: 1 << 20, scalarOffset: 8192, streamBytes: 0 };
  for (const first of [0, 1, 7]) {
    const many = first + 6 * lanes;
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y] = [e.param(0, 'float32', 'read', many), e.param(1, 'float32', 'write', many)];
    b.loop(6, (i) => {
      const at = e.add(e.mul(i, lanes), first);
      b.store(y, at, e.mul(b.load(x, at, lanes), e.constant('float32', 2, lanes)));
    });
    const program = b.build({ name: 'twice', params: [x, y] });
    const values = Float32Array.from({ length: many }, (_, i) => Math.sin(i));
    const want = Float32Array.from(values, (v, i) => (i < first ? 0 : 2 * v));
    for (const placement of ['start', 'end'] as const)
      for (const checked of [false, true]) {
        const data = [values, new Float32Array(many)];
        const all = memory.run(
          engine,
          { name: 'twice', program, data, scalars: [] },
          { ...target, checked },
          placement,
        );
        expect([...new Float32Array(all.buffer, all.byteOffset + 4 * many, many)]).toEqual([...want]);
      }
  }
  engine.dispose();
  memory.dispose();
});
