/**
 * The two kernels the engine brings itself: copying bytes and filling with a pattern. Called like any kernel, groups of 64 KiB.
 */
import { type Program, ProgramBuilder } from '@polygrad/core/kernel/ir';
import type { FunctionBody } from './asm/module.ts';
import * as W from './asm/plain.ts';
import * as T from './asm/types.ts';
import { ByteWriter } from './asm/writer.ts';
import type { Code } from './kernel.ts';

export interface BuiltinCodes {
  readonly copy: Code;
  readonly fill: Code;
}

/** Bytes one group copies or fills. */
export const blockBytes = 65536;

const words = blockBytes / 4;

/** Binding 0: the words to fill. Scalars: the pattern, the number of words. The grid is the largest there can be. */
export function fillProgram(): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const out = e.param(0, 'uint32', 'write', 2 ** 30);
  const pattern = e.scalar(0, 'uint32');
  const first = e.mul(e.special('group', 0), words);
  const count = e.min(e.sub(e.scalar(1, 'int32'), first), words);
  const whole = e.shr(count, 4);
  b.loop(whole, (i) => b.store(out, e.add(first, e.mul(i, 16)), e.splat(pattern, 16)));
  const rest = e.shl(whole, 4);
  b.loop(e.sub(count, rest), (i) => b.store(out, e.add(e.add(first, rest), i), pattern));
  return b.build({ name: 'fill', grid: [2 ** 16, 1, 1] });
}

/** Args block of the copy: destination, source and bytes, in the places of three bindings. */
export function copyFunction(addressBits: 32 | 64): FunctionBody {
  const wide = addressBits === 64;
  const w = new ByteWriter();
  const [args, from, to] = [0, 1, 2];
  const [start, size] = [4, 5];
  const type = wide ? T.i64 : T.i32;
  const get = (local: number): void => {
    w.u8(W.localGet);
    w.uleb(local);
  };
  const set = (local: number): void => {
    w.u8(W.localSet);
    w.uleb(local);
  };
  const argument = (slot: number): void => {
    get(args);
    if (wide) w.u8(W.i64ExtendI32U);
    w.u8(wide ? W.i64Load : W.i32Load);
    w.uleb(wide ? 3 : 2);
    w.uleb(slot * 8);
  };
  const byteOf = (group: number): void => {
    get(group);
    if (wide) w.u8(W.i64ExtendI32U);
    w.u8(wide ? W.i64Const : W.i32Const);
    w.sleb(16);
    w.u8(wide ? W.i64Shl : W.i32Shl);
  };
  byteOf(from);
  set(start);
  // size = min(to << 16, bytes) - start
  byteOf(to);
  set(size);
  get(size);
  argument(2);
  get(size);
  argument(2);
  w.u8(wide ? W.i64LtU : W.i32LtU);
  w.u8(W.select);
  get(start);
  w.u8(wide ? W.i64Sub : W.i32Sub);
  set(size);
  for (const slot of [0, 1]) {
    argument(slot);
    get(start);
    w.u8(wide ? W.i64Add : W.i32Add);
  }
  get(size);
  w.code(W.memoryCopy);
  w.u8(0);
  w.u8(0);
  return {
    name: 'copy',
    params: [T.i32, T.i32, T.i32, T.i32],
    results: [],
    locals: [type, type],
    code: w.take(),
  };
}
