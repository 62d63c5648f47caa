/** Loops as vectors: the same bits as one by one, and loops that stay as they are since another order would show. */
import { interpret } from '../../interpreter/interpret.ts';
import { describe, expect, it } from 'vitest';
import { ProgramBuilder } from '../../ir/builder/builder.ts';
import type { KNode, Program } from '../../ir/ir.ts';
import { verifyProgram } from '../../ir/verify/verify.ts';
import type { CodegenCaps } from '../lowering.ts';
import { withLanes } from './lanes.ts';

const caps = { simt: false, vectorBytes: 16 } as unknown as CodegenCaps;
const n = 37;

type Write = (p: ProgramBuilder, x: KNode, y: KNode, to: KNode) => void;

function programOf(write: Write): Program {
  const p = new ProgramBuilder();
  const x = p.e.param(0, 'float32', 'read', n);
  const to = p.e.param(1, 'int32', 'read', n);
  const y = p.e.param(2, 'float32', 'write', 2 * n);
  write(p, x, y, to);
  return p.build({ name: 'test', params: [x, to, y] as never });
}

function run(program: Program): Float32Array {
  const x = Float32Array.from({ length: n }, (_, i) => Math.sin(i * 1.7) * 3);
  const to = Int32Array.from({ length: n }, (_, i) => (i * 11) % 5);
  const y = new Float32Array(2 * n).fill(-1);
  interpret(program, [x, to, y]);
  return y;
}

const lanesOf = (program: Program): number => Math.max(...program.body.map((m) => m.lanes));

const vectors: Readonly<Record<string, Write>> = {
  'elements one by one': (p, x, y) => p.loop(n, (i) => p.store(y, i, p.e.mul(p.load(x, i), 3))),
  'neighbours, at edges the nearest': (p, x, y) =>
    p.loop(n, (i) => {
      const { e } = p;
      const before = p.load(x, e.max(e.sub(i, 1), 0));
      const after = p.load(x, e.min(e.add(i, 1), n - 1));
      p.store(y, i, e.sub(e.mul(after, 2), before));
    }),
  'neighbours, outside another value': (p, x, y) =>
    p.loop(n, (i) => {
      const { e } = p;
      const at = e.sub(i, 2);
      const gate = e.and(e.le(e.i32(0), at), e.lt(at, n));
      p.store(y, i, p.load(x, e.min(e.max(at, 0), n - 1), 1, gate, e.f32(7)));
    }),
  'a variable of each': (p, x, y) => {
    const sum = p.reg('sum', 'float32');
    p.loop(n, (i) => {
      p.store(sum, 0, p.load(x, i));
      p.loop(n, (j) => p.store(sum, 0, p.e.add(p.e.mul(p.load(sum, 0), 0.5), p.load(x, j))));
      p.store(y, i, p.load(sum, 0));
    });
  },
  'much arithmetic on what lies apart': (p, x, y, to) =>
    p.loop(n, (i) => {
      let v = p.load(x, p.load(to, i));
      for (let k = 0; k < 12; k++) v = p.e.add(p.e.mul(v, 0.5), k);
      p.store(y, i, v);
    }),
  'two stores that never meet': (p, x, y) =>
    p.loop(n, (i) => {
      p.store(y, i, p.load(x, i));
      p.store(y, p.e.add(i, n), p.e.neg(p.load(x, i)));
    }),
  'shared memory filled, then read backwards': (p, x, y) => {
    const line = p.shared('line', 'float32', n);
    p.loop(n, (i) => p.store(line, i, p.load(x, i)));
    p.loop(n, (i) => p.store(y, i, p.load(line, p.e.sub(n - 1, i))));
  },
  'a condition that all share': (p, x, y, to) =>
    p.ifThen(p.e.lt(p.load(to, 1), 3), () => p.loop(n, (i) => p.store(y, i, p.load(x, i)))),
};

const one: Readonly<Record<string, Write>> = {
  'a sum that is carried on': (p, x, y) => {
    const sum = p.reg('sum', 'float32');
    p.store(sum, 0, p.e.f32(0));
    p.loop(n, (i) => {
      p.store(sum, 0, p.e.add(p.load(sum, 0), p.load(x, i)));
      p.store(y, i, p.load(sum, 0));
    });
  },
  'a variable read after the loop': (p, x, y) => {
    const last = p.reg('last', 'float32');
    p.loop(n, (i) => {
      p.store(last, 0, p.load(x, i));
      p.store(y, i, p.load(last, 0));
    });
    p.store(y, n, p.load(last, 0));
  },
  'memory that the iteration before wrote': (p, x, y) => {
    const line = p.shared('line', 'float32', n + 1);
    p.store(line, 0, p.e.f32(1));
    p.loop(n, (i) => p.store(line, p.e.add(i, 1), p.e.add(p.load(line, i), p.load(x, i))));
    p.store(y, 0, p.load(line, n));
  },
  'one element for all: the last stays': (p, x, y) => p.loop(n, (i) => p.store(y, 3, p.load(x, i))),
  'elements that data names': (p, x, y, to) => p.loop(n, (i) => p.store(y, p.load(to, i), p.load(x, i))),
  'stores that meet in the next iteration': (p, x, y) =>
    p.loop(n, (i) => {
      p.store(y, i, p.load(x, i));
      p.store(y, p.e.add(i, 1), p.e.f32(4));
    }),
  'conditions that differ': (p, x, y) =>
    p.loop(n, (i) => p.ifThen(p.e.lt(p.load(x, i), p.e.f32(0)), () => p.store(y, i, p.e.f32(1)))),
  'counts that differ': (p, x, y, to) => {
    const v = p.reg('v', 'float32');
    p.loop(n, (i) => {
      p.store(v, 0, p.load(x, i));
      p.loop(p.load(to, i), () => p.store(v, 0, p.e.mul(p.load(v, 0), 2)));
      p.store(y, i, p.load(v, 0));
    });
  },
  'elements that lie apart, and nothing to compute': (p, x, y, to) =>
    p.loop(n, (i) => p.store(y, i, p.load(x, p.load(to, i)))),
  'turns inside that reach into the next lanes': (p, x, y) =>
    p.loop(n, (i) => p.loop(3, (j) => p.store(y, p.e.add(i, j), p.e.mul(p.load(x, i), 2)))),
};

describe('loops of programs', () => {
  for (const [name, write] of Object.entries(vectors))
    it(`become vectors: ${name}`, () => {
      const before = programOf(write);
      const after = withLanes(before, caps);
      verifyProgram(after);
      expect(lanesOf(after)).toBe(4);
      expect([...run(after)]).toEqual([...run(before)]);
    });

  for (const [name, write] of Object.entries(one))
    it(`stay as they are: ${name}`, () => {
      const before = programOf(write);
      expect(lanesOf(withLanes(before, caps))).toBe(1);
    });

  it('of an atomic stay as they are', () => {
    const p = new ProgramBuilder();
    const y = p.e.param(0, 'int32', 'readwrite', n);
    p.loop(n, (i) => p.atomic('add', y, i, p.e.i32(1)));
    const program = p.build({ name: 'atomic' });
    expect(withLanes(program, caps)).toBe(program);
  });

  it('are left to engines with groups of threads', () => {
    const program = programOf(vectors['elements one by one']!);
    expect(withLanes(program, { ...caps, simt: true })).toBe(program);
  });
});
