import { describe, expect, test } from 'vitest';
import { ProgramBuilder } from './builder.ts';
import { interpret } from '../../interpreter/interpret.ts';
import type { KNode, Program } from '../ir.ts';
import { verifyProgram } from '../verify/verify.ts';

function ops(p: Program): string {
  verifyProgram(p);
  return p.body
    .filter((n) => n.op !== 'CONST' && n.op !== 'PARAM')
    .map((n) => n.op)
    .join(' ');
}

describe('placement', () => {
  test('an index sum is split over the loops it depends on', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y] = [e.param(0, 'float32', 'read', 64), e.param(1, 'float32', 'write', 64)];
    b.loop(8, (i) => {
      b.loop(8, (j) => {
        const at = e.add(j, e.mul(i, e.i32(8)));
        b.store(y, at, e.add(b.load(x, at), e.f32(1)));
      });
    });
    expect(ops(b.build({ name: 'add' }))).toBe('LOOP MUL LOOP ADD LOAD ADD STORE ENDLOOP ENDLOOP');
  });
  test('what was read from group memory is read again once something has been stored there', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'float32', 'write', 4);
    const [mem, other] = [b.shared('mem', 'float32', 1), b.shared('other', 'float32', 1)];
    const read = e.add(e.load(mem, e.i32(0)), e.load(other, e.i32(0)));
    const more = e.mul(read, 10);
    b.store(other, 0, e.f32(100));
    for (const [i, x] of [1, 2].entries()) {
      b.loop(2, () => b.store(mem, 0, e.f32(x)));
      b.store(y, 2 * i, read);
      b.store(y, 2 * i + 1, more);
    }
    const result = new Float32Array(4);
    const program = b.build({ name: 'again' });
    interpret(program, [result]);
    expect([...result]).toEqual([101, 1010, 102, 1020]);
    // Nothing has been stored to `other` in between: it is read once.
    expect(program.body.filter((n) => n.op === 'LOAD').length).toBe(3);
  });
  test('values that depend on no loop are computed before it, once', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y] = [e.param(0, 'float32', 'read', 4), e.param(1, 'float32', 'write', 64)];
    b.loop(8, (i) => {
      b.loop(8, (j) => b.store(y, e.add(e.mul(i, e.i32(8)), j), e.mul(b.load(x, 0), b.load(x, 1))));
      b.store(y, i, e.mul(b.load(x, 0), b.load(x, 1)));
    });
    expect(ops(b.build({ name: 'outer' }))).toBe('LOAD LOAD MUL LOOP MUL LOOP ADD STORE ENDLOOP STORE ENDLOOP');
  });
  test('loads stay inside IFs and loops that may not run, gated ones too', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y] = [e.param(0, 'float32', 'read', 4), e.param(1, 'float32', 'write', 64)];
    const n = e.param(2, 'int32', 'read', 1);
    b.loop(b.load(n, 0), (i) => b.store(y, i, b.load(x, 3)));
    b.ifThen(e.lt(b.load(n, 0), e.i32(3)), () => b.store(y, 9, e.div(b.load(x, 2), e.f32(3))));
    b.loop(b.load(n, 0), (i) => b.store(y, i, b.load(x, 1, 1, e.lt(b.load(n, 0), e.i32(5)))));
    expect(ops(b.build({ name: 'guard' }))).toBe(
      'LOAD LOOP LOAD STORE ENDLOOP LT IF LOAD DIV STORE ENDIF LT LOOP LOAD STORE ENDLOOP',
    );
  });
  test('equal expressions in sibling blocks are separate nodes', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [x, y] = [e.param(0, 'float32', 'read', 4), e.param(1, 'float32', 'write', 64)];
    const c = e.lt(e.cast(b.load(x, 0), 'int32'), e.i32(1));
    for (const k of [1, 2]) b.ifThen(c, () => b.store(y, k, e.add(b.load(x, 3), e.f32(1))));
    const p = b.build({ name: 'siblings' });
    expect(ops(p)).toBe('LOAD CAST LT IF LOAD ADD STORE ENDIF IF LOAD ADD STORE ENDIF');
    expect(new Set(p.body).size).toBe(p.body.length);
  });
  test('reads of registers and written memory happen where they are called', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'float32', 'readwrite', 4);
    const sum = b.reg('sum', 'float32');
    b.store(sum, 0, e.f32(0));
    const first = b.load(y, 0);
    b.loop(4, (i) => b.store(sum, 0, e.add(b.load(sum, 0), b.load(y, i))));
    b.store(y, 0, e.add(first, b.load(sum, 0)));
    b.store(y, 1, e.sub(first, b.load(y, 0)));
    const data = new Float32Array([1, 2, 3, 4]);
    const p = b.build({ name: 'reads' });
    verifyProgram(p);
    interpret(p, [data]);
    expect([...data]).toEqual([11, -10, 3, 4]);
  });
});

describe('what is left out', () => {
  test('loops of one or no iteration, constant conditions, unused values, blocks without effect', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const y = e.param(0, 'float32', 'write', 4);
    b.loop(1, (i) => b.store(y, i, e.f32(1)));
    b.loop(0, (i) => b.store(y, i, e.f32(2)));
    b.ifThen(e.bool(true), () => b.store(y, 1, e.f32(3)));
    b.ifThen(e.bool(false), () => b.store(y, 2, e.f32(4)));
    b.loop(5, (i) => void b.place(e.mul(i, e.i32(3))));
    expect(ops(b.build({ name: 'less' }))).toBe('STORE STORE');
  });
});

test('a value used after its loop has ended is an error', () => {
  const b = new ProgramBuilder();
  const y = b.e.param(0, 'int32', 'write', 4);
  let escaped: KNode | null = null;
  b.loop(4, (i) => {
    escaped = i;
    b.store(y, i, i);
  });
  expect(() => b.store(y, 0, escaped as unknown as KNode)).toThrow('loop that has ended');
});
