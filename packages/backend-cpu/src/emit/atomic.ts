/** ATOMIC: one instruction for some operations on integers, a loop that compares and exchanges for the others. */
import type { KNodeOf } from '@polygrad/core/kernel/ir';
import * as A from '../asm/atomics.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { Address } from './address.ts';
import { type Context, select } from './context.ts';
import type { MemoryClass, Val } from './lir.ts';
import { binaryCodes } from './tables.ts';
import { type Reg, refuse } from './target.ts';

type AtomicOp = KNodeOf<'ATOMIC'>['arg']['op'];

/** Instructions that load and store a number, and the register it is held in. */
interface Held {
  readonly reg: Reg;
  readonly load: number;
  readonly store: number;
}

/** Combines a value with four bytes of memory. `alone`: no other thread sees that memory. */
export function lowerAtomic(
  ctx: Context,
  op: AtomicOp,
  { reg, load, store }: Held,
  { base, offset }: Address,
  cls: MemoryClass,
  value: Val,
  alone: boolean,
): void {
  const { fn } = ctx;
  const isInt = reg.type === T.i32;
  if (alone) {
    fn.store(store, base, combine(ctx, op, reg, fn.load(load, reg.type, base, offset, cls), value), offset, cls);
  } else if (isInt && op === 'add') fn.effect(A.i32RmwAdd, T.i32, [base, value], offset, cls);
  else if (isInt && op === 'or') fn.effect(A.i32RmwOr, T.i32, [base, value], offset, cls);
  else {
    const seen = fn.newCell(T.i32);
    fn.assign(seen, fn.load(W.i32Load, T.i32, base, offset, cls));
    fn.openRepeat();
    const old = fn.readNow(seen);
    const next = combine(ctx, op, reg, isInt ? old : fn.op(W.f32ReinterpretI32, T.f32, [old]), value);
    const bits = isInt ? next : fn.op(W.i32ReinterpretF32, T.i32, [next]);
    const found = fn.effect(A.i32RmwCmpxchg, T.i32, [base, old, bits], offset, cls);
    const goOn = fn.op(W.i32Ne, T.i32, [found, old]);
    fn.assign(seen, found);
    fn.closeRepeat(goOn);
  }
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
