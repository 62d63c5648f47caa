/** What is written where it is used, and what must be computed before. */
import { type KNode, ProgramBuilder, type Program } from '@polygrad/core/kernel';
import { expect, it } from 'vitest';
import { printOpenCl } from './index.ts';

type B = ProgramBuilder;

/** Lines of the kernel's body. */
function linesOf(write: (b: B, x: KNode, y: KNode) => void): string[] {
  const b = new ProgramBuilder();
  const [x, y] = [b.e.param(0, 'float32', 'read', 64), b.e.param(1, 'float32', 'readwrite', 64)];
  write(b, x, y);
  const program: Program = b.build({ name: 'lines', params: [x, y] });
  const { source } = printOpenCl(program);
  return source
    .slice(source.indexOf('{') + 1, source.lastIndexOf('}'))
    .trim()
    .split(/\n\s*/);
}

it('single uses are folded', () => {
  expect(linesOf((b, x, y) => b.store(y, 0, b.e.mul(b.e.add(b.load(x, 0), b.load(x, 1)), b.e.f32(2))))).toEqual([
    'p1[0] = (p0[0] + p0[1]) * 2.0f;',
  ]);
});

it('what is used twice has a name', () => {
  const lines = linesOf((b, x, y) => {
    const sum = b.e.add(b.load(x, 0), b.load(x, 1));
    b.store(y, 0, b.e.mul(sum, sum));
  });
  expect(lines).toEqual(['const float v0 = p0[0] + p0[1];', 'p1[0] = v0 * v0;']);
});

it('a load stays before a store, also of another parameter, which may be the same memory', () => {
  const lines = linesOf((b, x, y) => {
    const first = b.place(b.load(x, 0));
    const old = b.load(y, 1);
    b.store(y, 0, b.e.f32(1));
    b.store(y, 2, b.e.add(first, old));
  });
  expect(lines).toEqual(['const float v0 = p0[0];', 'const float v1 = p1[1];', 'p1[0] = 1.0f;', 'p1[2] = v0 + v1;']);
});

it('a register is read where it is used unless it is written before', () => {
  const lines = linesOf((b, x, y) => {
    const [r, s] = [b.reg('r', 'float32', 1, 2), b.reg('s', 'float32')];
    b.store(r, 0, b.load(x, 0));
    b.store(r, 1, b.load(x, 1));
    const [kept, moved] = [b.load(r, 0), b.load(r, 1)];
    b.store(r, 0, b.e.f32(3));
    b.store(s, 0, moved);
    b.store(y, 0, b.e.add(kept, b.load(s, 0)));
    b.store(y, 1, b.load(r, 0));
  });
  expect(lines.slice(3)).toEqual([
    'r_0_0 = p0[0];',
    'r_0_1 = p0[1];',
    'const float v0 = r_0_0;',
    'r_0_0 = 3.0f;',
    's_0_0 = r_0_1;',
    'p1[0] = v0 + s_0_0;',
    'p1[1] = r_0_0;',
  ]);
});

it('nothing moves into a loop, and its extent is fixed when it starts', () => {
  const lines = linesOf((b, x, y) => {
    const n = b.reg('n', 'int32');
    b.store(n, 0, b.e.i32(3));
    const root = b.place(b.e.unary('SQRT', b.load(x, 0)));
    b.loop(b.load(n, 0), (i) => {
      b.store(n, 0, i);
      b.store(y, i, root);
    });
  });
  expect(lines).toEqual([
    'int n_0_0;',
    'n_0_0 = 3;',
    'const float v0 = sqrt(p0[0]);',
    'const int v1 = n_0_0;',
    'for (int i0 = 0; i0 < v1; ++i0) {',
    'n_0_0 = i0;',
    'p1[i0] = v0;',
    '}',
  ]);
});
