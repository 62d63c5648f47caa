/** Which stores go past the caches; that they store the same is tested where code runs (backend-native). */
import { ProgramBuilder } from '@polygrad/core/kernel';
import { expect, it } from 'vitest';
import { emitMachineCode } from '../emit.ts';
import type { MachineTarget } from '../target.ts';

const v4: MachineTarget = { isa: 'x64-v4', vectorBytes: 64, sharedBytes: 65536, scalarOffset: 8192, streamBytes: 4096 };
const v3: MachineTarget = { ...v4, isa: 'x64-v3', vectorBytes: 32 };

/** Names of instructions of a copy of rows of vectors: `step` elements from one turn of the loop to the next. */
function copy(
  target: MachineTarget,
  elements: number,
  step: number,
  access: 'write' | 'readwrite' = 'write',
  lanes = target.vectorBytes / 4,
  flopsPerByte = 0,
): string[] {
  const b = new ProgramBuilder();
  const { e } = b;
  const [x, y] = [e.param(0, 'float32', 'read', elements), e.param(1, 'float32', access, elements)];
  b.loop(elements / step, (i) => {
    const at = e.mul(i, step);
    const value = b.load(x, at, lanes);
    b.store(y, at, access === 'write' ? value : e.add(value, b.load(y, at, lanes)));
  });
  const program = b.build({ name: 'copy', params: [x, y] });
  const cost = { flops: flopsPerByte * 8 * elements, bytes: 8 * elements };
  const { text } = emitMachineCode({ ...program, cost }, target, true);
  return text.split('\n').map((line) => line.trim().split(' ')[0]!);
}

it('large outputs are, with a fence at the end', () => {
  const names = copy(v4, 1024, 16);
  expect(names).toContain('vmovntps');
  expect(names.indexOf('sfence')).toBeGreaterThan(names.lastIndexOf('vmovntps'));
  expect(copy(v3, 1024, 8)).toContain('vmovntps');
  expect(copy({ ...v3, vectorBytes: 16 }, 1024, 4)).toContain('vmovntps');
});

it('lines of several stores are', () => {
  const b = new ProgramBuilder();
  const { e } = b;
  const [x, y] = [e.param(0, 'float32', 'read', 1024), e.param(1, 'float32', 'write', 1024)];
  b.loop(64, (i) => {
    for (let k = 0; k < 4; k++) {
      const at = e.add(e.mul(i, 16), 4 * k);
      b.store(y, at, b.load(x, at, 4));
    }
  });
  const { text } = emitMachineCode(b.build({ name: 'lines', params: [x, y] }), v4, true);
  // The body is written twice.
  expect(text.match(/vmovntps XMMWORD/g)).toHaveLength(8);
});

it.each([
  ['small outputs', () => copy(v4, 1008, 16)],
  ['outputs that are read as well', () => copy(v4, 1024, 16, 'readwrite')],
  ['outputs of much arithmetic', () => copy(v4, 1024, 16, 'write', 16, 5)],
  ['parts of lines', () => copy(v4, 1024, 16, 'write', 4)],
  ['halves of lines far from each other', () => copy(v3, 1024, 64)],
  ['outputs where nobody says from which size on', () => copy({ ...v4, streamBytes: undefined }, 1024, 16)],
  ['outputs on arm64', () => copy({ ...v4, isa: 'arm64', vectorBytes: 16 }, 1024, 4)],
])('%s are not', (_, names) => {
  expect(names()).not.toContain('vmovntps');
  expect(names()).not.toContain('sfence');
});

/** Names of instructions of a sum over vectors, kept in a register, or in group memory. */
function sum(target: MachineTarget, elements: number, step = 16, space: 'reg' | 'shared' = 'reg', part = 1): string[] {
  const b = new ProgramBuilder();
  const { e } = b;
  const [x, y] = [e.param(0, 'float32', 'read', elements), e.param(1, 'float32', 'write', 16)];
  const cell = space === 'reg' ? b.reg('sum', 'float32', 16, 1) : b.shared('sum', 'float32', 16);
  b.store(cell, e.i32(0), e.constant('float32', 0, 16));
  b.loop(elements / step, (i) => {
    b.store(cell, e.i32(0), e.add(b.load(cell, e.i32(0), 16), b.load(x, e.mul(i, step), 16)));
  });
  b.store(y, e.i32(0), b.load(cell, e.i32(0), 16));
  const program = b.build({ name: 'sum', params: [x, y] });
  const { text } = emitMachineCode(
    { ...program, cost: { flops: part * elements, bytes: 4 * part * elements } },
    target,
    true,
  );
  return text.split('\n').map((line) => line.trim().split(' ')[0]!);
}

it('large inputs of loops that only read are prefetched', () => {
  expect(sum(v4, 1024)).toContain('prefetcht1');
});

it.each([
  ['smaller inputs', () => sum(v4, 512)],
  ['inputs of loops that write', () => sum(v4, 1024, 16, 'shared')],
  ['inputs of a copy', () => copy(v4, 1024, 16)],
  ['pages that are left out', () => sum(v4, 8192, 2048)],
  ['inputs read in parts', () => sum(v4, 1024, 16, 'reg', 0.75)],
  ['inputs where nobody says from which size on', () => sum({ ...v4, streamBytes: undefined }, 1024)],
  ['inputs on arm64', () => sum({ ...v4, isa: 'arm64', vectorBytes: 16 }, 1024)],
])('%s are not prefetched', (_, names) => {
  expect(names()).not.toContain('prefetcht1');
});
