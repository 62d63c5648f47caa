/** WHERE with a long side: the same values whoever takes it, in vectors of all widths, in loops, nested, shared. */
import { interpret, type KNode, type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { emitModule } from './emit.ts';
import { plainTarget, runProgram } from '../testing/harness.ts';
import type { DType } from './target.ts';

type Make = (b: ProgramBuilder, x: KNode) => KNode;

/** Some 60 operations that leave a number of the same size. */
function long(b: ProgramBuilder, x: KNode, seed: number): KNode {
  const c = (v: number): KNode => b.e.constant(x.dtype as DType, v, x.lanes);
  let y = x;
  for (let i = 0; i < 30; i++) y = b.e.add(b.e.mul(y, c(0.5)), c(seed + i));
  return y;
}

const size = 48;
const inputs = [
  Array.from({ length: size }, (_, i) => i / 4 - 6), // both sides within vectors
  Array.from({ length: size }, (_, i) => i + 1), // one side only
  Array.from({ length: size }, (_, i) => -i - 1), // the other only
  Array.from({ length: size }, (_, i) => (i === 21 ? 5 : -1)), // one lane
];

function programOf(dtype: 'float32' | 'float64', lanes: number, make: Make): Program {
  const b = new ProgramBuilder();
  const from = b.e.param(1, dtype, 'read', size);
  const to = b.e.param(0, dtype, 'write', size);
  b.loop(size / lanes, (i) => {
    const at = b.e.mul(i, b.e.i32(lanes));
    b.store(to, at, make(b, b.load(from, at, lanes)));
  });
  return b.build({ name: 'rare', grid: [1, 1, 1], group: [1, 1, 1], params: [to, from], scalars: [] });
}

const zero = (b: ProgramBuilder, x: KNode): KNode => b.e.constant(x.dtype as DType, 0, x.lanes);
const shapes: Record<string, Make> = {
  'long side first': (b, x) => b.e.where(b.e.lt(zero(b, x), x), long(b, x, 1), b.e.neg(x)),
  'long side second': (b, x) => b.e.where(b.e.lt(zero(b, x), x), b.e.neg(x), long(b, x, 1)),
  'both sides long': (b, x) => b.e.where(b.e.lt(zero(b, x), x), long(b, x, 1), long(b, x, 3)),
  'one in the other': (b, x) => {
    const inner = b.e.where(b.e.lt(x, b.e.constant(x.dtype as DType, -3, x.lanes)), long(b, x, 2), b.e.neg(x));
    return b.e.where(b.e.lt(zero(b, x), x), b.e.mul(x, x), long(b, inner, 4));
  },
  'a part used elsewhere too': (b, x) => {
    const part = long(b, x, 1);
    return b.e.add(b.e.where(b.e.lt(zero(b, x), x), long(b, part, 5), x), part);
  },
  'two after each other': (b, x) => {
    const first = b.e.where(b.e.lt(zero(b, x), x), long(b, x, 1), x);
    return b.e.where(b.e.lt(first, x), x, long(b, first, 2));
  },
};

describe('long sides of WHERE', () => {
  describe.each(Object.entries(shapes))('%s', (_, make) => {
    it.each(['float32', 'float64'] as const)('%s', (dtype) => {
      const Data = dtype === 'float32' ? Float32Array : Float64Array;
      for (const lanes of [1, 2, 4, 8, 16]) {
        const program = programOf(dtype, lanes, make);
        for (const input of inputs) {
          const [want, got] = [new Data(size), new Data(size)];
          interpret(program, [want, Data.from(input)], []);
          runProgram(program, [got, Data.from(input)]);
          expect([...got], `${lanes} lanes`).toEqual([...want]);
        }
      }
    });
  });

  it('leave the numbers and the group of the program where they are, without any loop', () => {
    const b = new ProgramBuilder();
    const { e } = b;
    const [to, from] = [e.param(0, 'float32', 'write', 2), e.param(1, 'float32', 'read', 2)];
    const group = e.special('group', 0, 2);
    const x = b.load(from, group);
    const side = e.mul(long(b, e.add(x, e.cast(e.special('group', 1, 1), 'float32')), 1), e.scalar(0, 'float32'));
    b.store(to, group, e.where(e.lt(zero(b, x), x), side, x));
    const program = b.build({ name: 'once', grid: [2, 1, 1], params: [to, from], scalars: ['float32'] });
    const [want, got] = [new Float32Array(2), new Float32Array(2)];
    interpret(program, [want, new Float32Array([3, -3])], [0.25]);
    runProgram(program, [got, new Float32Array([3, -3])], [0.25]);
    expect([...got]).toEqual([...want]);
  });

  it('are within a condition, short ones are not', () => {
    const ifs = (make: Make): number => {
      const bytes = emitModule([programOf('float32', 4, make)], plainTarget, {
        minPages: 1,
        shared: false,
        addressBits: 32,
      });
      // 0xfd 0x53 is any_true, which nothing else prints.
      return bytes.reduce((n, byte, i) => n + Number(byte === 0xfd && bytes[i + 1] === 0x53), 0);
    };
    expect(ifs(shapes['long side first']!)).toBeGreaterThan(0);
    expect(ifs((b, x) => b.e.where(b.e.lt(zero(b, x), x), b.e.mul(x, x), b.e.neg(x)))).toBe(0);
  });
});
