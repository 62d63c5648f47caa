import { expect, test } from 'vitest';
import { ProgramBuilder } from './builder.ts';
import { verifyProgram } from './verify.ts';

test('an index sum is split over the loops it depends on', () => {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'read', 64);
  const y = e.param(1, 'float32', 'write', 64);
  b.loop(8, (i) => {
    b.loop(8, (j) => {
      const at = e.add(e.mul(i, e.i32(8)), j);
      b.store(y, at, e.add(b.load(x, at), e.f32(1)));
    });
  });
  const p = b.build({ name: 'add' });
  verifyProgram(p);
  expect(p.body.map((n) => n.op)).toEqual(['CONST', 'PARAM', 'CONST', 'PARAM', 'LOOP', 'MUL', 'LOOP', 'ADD', 'LOAD', 'ADD', 'STORE', 'ENDLOOP', 'ENDLOOP']);
});
