/** Which joined shifts become one rotation; what rotations compute is tested where code runs. */
import { type KNode, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { emitMachineCode } from '../emit.ts';
import type { MachineTarget } from '../target.ts';

const widest: MachineTarget = { isa: 'x64-v4', vectorBytes: 64, sharedBytes: 65536, scalarOffset: 8192 };
const narrower: MachineTarget = { ...widest, isa: 'x64-v3', vectorBytes: 32 };

/** Names of the shifts and rotations of a program that stores what `write` makes of a vector. */
function names(write: (b: ProgramBuilder, x: KNode) => KNode, target = widest, dtype: 'uint32' | 'int32' = 'uint32') {
  const b = new ProgramBuilder();
  const [from, to] = [b.e.param(0, dtype, 'read', 64), b.e.param(1, dtype, 'write', 64)];
  b.store(to, b.e.i32(0), write(b, b.load(from, b.e.i32(0), target.vectorBytes / 4)));
  const { text } = emitMachineCode(b.build({ name: 'rotations', params: [from, to] }), target, true);
  return text
    .split('\n')
    .map((line) => line.trim().split(' ')[0]!)
    .filter((name) => /^v(ps[lr]|prol|or)/.test(name));
}

function joined({ e }: ProgramBuilder, x: KNode, left: number, right: number): KNode {
  const by = (n: number): KNode => e.constant(x.dtype as 'uint32', n);
  return e.or(e.shl(x, by(left)), e.shr(x, by(right)));
}

describe('shifts that are joined', () => {
  it('are a rotation where they make up a word', () => {
    expect(names((b, x) => joined(b, x, 13, 19))).toEqual(['vprold']);
    expect(names(({ e }, x) => e.or(e.shr(x, e.constant('uint32', 6)), e.shl(x, e.constant('uint32', 26))))).toEqual([
      'vprold',
    ]);
  });

  it('stay where others use them too', () => {
    const both = names((b, x) => b.e.add(joined(b, x, 13, 19), b.e.shl(x, b.e.constant('uint32', 13))));
    expect(both).toEqual(['vpslld', 'vprold']);
  });

  it('are no rotation where bits are lost, signs are drawn in, or the machine has none', () => {
    const three = ['vpslld', 'vpsrld', 'vorps'];
    expect(names((b, x) => joined(b, x, 13, 20))).toEqual(three);
    expect(names((b, x) => joined(b, x, 13, 19), widest, 'int32')).toEqual(['vpslld', 'vpsrad', 'vorps']);
    expect(names((b, x) => joined(b, x, 13, 19), narrower)).toEqual(three);
  });

  it('stay shifts where they read a register that is written again', () => {
    const made = names((b, x) => {
      const held = b.reg('held', 'uint32', 16);
      b.store(held, 0, x);
      b.loop(3, () => b.store(held, 0, b.e.add(joined(b, b.load(held, 0), 7, 25), x)));
      return b.load(held, 0);
    });
    expect(made).toEqual(['vpslld', 'vpsrld', 'vorps']);
  });
});
