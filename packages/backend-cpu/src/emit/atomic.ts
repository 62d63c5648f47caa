/** ATOMIC: one instruction for some operations on integers, a loop that compares and exchanges for the others. */
import type { KNodeOf } from '@polygrad/core/kernel/ir';
import * as A from '../asm/atomics.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { Address } from './address.ts';
import { type Context, select } from './context.ts';
import type { Fn } from './fn.ts';
import { Block, type MemoryClass, type Val } from './lir.ts';
import { binaryCodes } from './tables.ts';
import { type Reg, refuse, regOf } from './target.ts';

type AtomicOp = KNodeOf<'ATOMIC'>['arg']['op'];

/** Instructions that load and store a number, and its bytes. */
interface Held {
  readonly bytes: number;
  readonly load: number;
  readonly store: number;
}

/** Combines a value with four bytes of memory. `place`: the address, once the value and the gate are there. */
export function lowerAtomic(
  ctx: Context,
  n: KNodeOf<'ATOMIC'>,
  { bytes, load, store }: Held,
  cls: MemoryClass | null,
  place: () => Address,
): void {
  const { fn, target } = ctx;
  const [mem, , value, gate] = n.src;
  const { op } = n.arg;
  if (cls === null || bytes !== 4) refuse(`atomic ${op} needs a written memory of 4-byte numbers: got ${mem.dtype}`);
  const reg = regOf(mem.dtype);
  const v = ctx.get(value).parts[0]!;
  if (gate !== undefined) fn.openIf(ctx.get(gate).parts[0]!);
  const { base, offset } = place();
  const isInt = reg.type === T.i32;
  // No other thread sees the memory.
  if (!target.shared || mem.op === 'SHARED') {
    fn.store(store, base, combine(ctx, op, reg, fn.load(load, reg.type, base, offset, cls), v), offset, cls);
  } else if (isInt && op === 'add') fn.effect(A.i32RmwAdd, T.i32, [base, v], offset, cls);
  else if (isInt && op === 'or') fn.effect(A.i32RmwOr, T.i32, [base, v], offset, cls);
  else {
    const seen = fn.newCell(T.i32);
    fn.assign(seen, fn.load(W.i32Load, T.i32, base, offset, cls));
    repeat(fn, () => {
      const old = fn.readNow(seen);
      const next = combine(ctx, op, reg, isInt ? old : fn.op(W.f32ReinterpretI32, T.f32, [old]), v);
      const bits = isInt ? next : fn.op(W.i32ReinterpretF32, T.i32, [next]);
      const found = fn.effect(A.i32RmwCmpxchg, T.i32, [base, old, bits], offset, cls);
      const goOn = fn.op(W.i32Ne, T.i32, [found, old]);
      fn.assign(seen, found);
      return goOn;
    });
  }
  if (gate !== undefined) fn.close();
}

/** A body that is repeated while the value it gives holds. */
function repeat(fn: Fn, body: () => Val): void {
  const block = new Block(fn.current, 'repeat', null);
  fn.current.stmts.push({ kind: 'block', block });
  fn.current = block;
  fn.floor = block;
  fn.current.cond = body();
  fn.close();
}

function combine(ctx: Context, op: AtomicOp, reg: Reg, a: Val, b: Val): Val {
  const name = op === 'add' ? 'ADD' : op === 'or' ? 'OR' : op === 'max' ? 'MAX' : 'MIN';
  const code = binaryCodes[name]![reg.kind];
  if (code !== undefined) return ctx.fn.op(code[0], reg.type, [a, b]);
  if (reg.type !== T.i32) refuse(`atomic ${op} on floats`);
  const greater = reg.kind === 'i32' ? W.i32GtS : W.i32GtU;
  const first = ctx.fn.op(greater, T.i32, op === 'max' ? [a, b] : [b, a]);
  return select(ctx, first, a, b);
}
