/**
 * LOAD, STORE and ATOMIC: pointers of memory objects, storage forms of dtypes, registers of the IR, gates.
 */
import { told } from '#listing';
import type { KNode, KNodeOf } from '@polygrad/core/kernel/ir';
import type { SquareColumn, Pick, Run, Window } from '@polygrad/core/kernel/windows';
import * as S from '../asm/simd.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { Address, Addresses } from './address.ts';
import { type Context, type Lowered, maskOfWidth, partCount, select, shuffle32, vop } from './context.ts';
import type { Cell, MemoryClass, Val } from './lir.ts';
import { dtypeCode } from '#dtypes';
import { type DType, refuse, regOf, smallBits } from './target.ts';
import { transposeSquare } from './vectors.ts';

const word = { bytes: 4, load: W.i32Load, store: W.i32Store, splat: S.load32Splat };
const long = { bytes: 8, load: W.i64Load, store: W.i64Store, splat: S.load64Splat };

/** How a dtype lies in memory. */
const storage: Readonly<Partial<Record<DType, { bytes: number; load: number; store: number; splat: number }>>> = {
  float32: { bytes: 4, load: W.f32Load, store: W.f32Store, splat: S.load32Splat },
  float64: { bytes: 8, load: W.f64Load, store: W.f64Store, splat: S.load64Splat },
  int32: word,
  uint32: word,
  int64: long,
  uint64: long,
  int8: { bytes: 1, load: W.i32Load8S, store: W.i32Store8, splat: 0 },
  uint8: { bytes: 1, load: W.i32Load8U, store: W.i32Store8, splat: 0 },
  int16: { bytes: 2, load: W.i32Load16S, store: W.i32Store16, splat: 0 },
  uint16: { bytes: 2, load: W.i32Load16U, store: W.i32Store16, splat: 0 },
  bool: { bytes: 1, load: W.i32Load8U, store: W.i32Store8, splat: 0 },
};

function storageOf(dtype: KNode['dtype']): NonNullable<(typeof storage)[DType]> {
  return storage[dtype as DType] ?? refuse(told && `${dtype} has no place in memory here`);
}

/** Where a memory object starts and what orders its accesses. */
interface Place {
  readonly pointer: Val;
  readonly extra: number;
  readonly cls: MemoryClass | null;
}

export class Memory {
  readonly #ctx: Context;
  readonly #addresses: Addresses;
  readonly #args: Val;
  readonly #scratch: Val;
  readonly #places = new Map<KNode, Place>();
  readonly #slotClasses = new Map<number, MemoryClass>();
  readonly #registers = new Map<KNode, Cell[][]>();
  #scratchBytes = 0;

  constructor(ctx: Context, addresses: Addresses, args: Val, scratch: Val) {
    this.#ctx = ctx;
    this.#addresses = addresses;
    this.#args = args;
    this.#scratch = scratch;
  }

  /** Value of SCALAR number `slot`. */
  scalar(dtype: KNode['dtype'], slot: number): Val {
    const reg = regOf(dtype);
    return this.#ctx.fn.op(
      reg.type === T.i32 ? W.i32Load : storageOf(dtype).load,
      reg.type,
      [this.#args],
      this.#ctx.target.scalarOffset + slot * 8,
    );
  }

  load(n: KNodeOf<'LOAD'>, splat: boolean): Lowered {
    const [mem, index, gate, alt] = n.src;
    const reg = regOf(n.dtype);
    if (mem.op === 'REG')
      return { parts: this.#register(mem, index).map((c) => this.#ctx.fn.readNow(c)), width: reg.width };
    const { fn } = this.#ctx;
    const { pointer, extra, cls } = this.#place(mem);
    const { bytes, load, splat: splatCode } = storageOf(mem.dtype);
    const gateVal = gate === undefined ? null : this.#ctx.get(gate).parts[0]!;
    const address = this.#addresses.of(pointer, extra, index, bytes, gateVal !== null);
    const base = gateVal === null ? address.base : this.#addresses.gated(address.base, gateVal);
    const at: Address = { base, offset: address.offset };
    const otherwise = gateVal === null || alt === undefined || isZero(alt) ? null : this.#ctx.get(alt);
    if (n.lanes === 1) {
      if (splat && splatCode !== 0 && otherwise === null)
        return { parts: [fn.load(splatCode, T.v128, base, at.offset, cls)], width: reg.width };
      const v = fn.load(load, reg.type, base, at.offset, cls);
      return {
        parts: [otherwise === null ? v : select(this.#ctx, gateVal!, v, otherwise.parts[0]!)],
        width: reg.width,
      };
    }
    const parts = this.#loadVector(n.dtype, n.lanes, at, cls);
    if (otherwise === null) return { parts, width: reg.width };
    const mask = vop(this.#ctx, S.i32Splat, fn.op(W.i32Sub, T.i32, [fn.i32(0), gateVal!]));
    const other = n.dtype === 'bool' ? maskOfWidth(this.#ctx, otherwise, n.lanes, 4) : otherwise.parts;
    return { parts: parts.map((v, p) => vop(this.#ctx, S.bitselect, v, other[p]!, mask)), width: reg.width };
  }

  /** The vector that a gather takes from its windows. */
  gather(pick: Pick): Val {
    const [first, ...others] = pick.windows.map((w) => this.#window(pick.run, w)) as [Val, ...Val[]];
    const { lanes } = pick;
    if (others.length === 0) return lanes.every(({ at }, i) => at === i) ? first : this.#shuffled(first, first, lanes);
    let v = first;
    for (const [k, next] of others.entries()) {
      // Lanes of the first window are put in place with those of the second; others come after, each into its place.
      const placed = lanes.map(({ window, at }, i) => {
        if (window === k + 1) return { window: 1, at };
        return { window: 0, at: k === 0 && window === 0 ? at : i };
      });
      v = this.#shuffled(v, next, placed);
    }
    return v;
  }

  #shuffled(a: Val, b: Val, lanes: Pick['lanes']): Val {
    const at = lanes.map((lane) => lane.window * 4 + lane.at) as [number, number, number, number];
    return shuffle32(this.#ctx, a, b, at);
  }

  /** One column of a square of rows, which is transposed once per block. */
  column({ rows, column }: SquareColumn): Val {
    const loaded = rows.map(({ run, at }) => this.#window(run, { at, size: 4 }));
    const key = loaded.map((v) => v.id).join(' ');
    let columns = this.#squares.get(key);
    if (columns === undefined) this.#squares.set(key, (columns = transposeSquare(this.#ctx, loaded)));
    return columns[column]!;
  }

  readonly #squares = new Map<string, readonly Val[]>();
  readonly #windows = new Map<string, Val>();

  /** A window of a run, as wide as a part of a vector unless `size` says half of it; loaded once per block. */
  #window(run: Run, { at, size }: Window): Val {
    const [mem, index] = run.first.src;
    const { pointer, extra } = this.#place(mem);
    const { bytes } = storageOf(mem.dtype);
    const { base, offset } = this.#addresses.of(pointer, extra, index, bytes, false);
    const from = offset + at * bytes;
    const key = `${base.id} ${from} ${mem.dtype} ${size}`;
    let v = this.#windows.get(key);
    if (v === undefined || v.block !== this.#ctx.fn.current) {
      if (size === 2) v = this.#ctx.fn.load(S.load64Zero, T.v128, base, from, null);
      else [v] = this.#loadVector(mem.dtype, 16 / regOf(mem.dtype).width, { base, offset: from }, null) as [Val];
      this.#windows.set(key, v);
    }
    return v;
  }

  store(n: KNodeOf<'STORE'>): void {
    const [mem, index, value, gate] = n.src;
    const { fn } = this.#ctx;
    const reg = regOf(mem.dtype);
    const bits = mem.op === 'REG' ? 0 : smallBits(mem.dtype);
    const given = bits === 0 ? value : dtypeCode().uncut(value);
    const v = this.#ctx.get(given);
    const parts = reg.kind === 'bool' && value.lanes > 1 ? maskOfWidth(this.#ctx, v, value.lanes, 4) : v.parts;
    if (gate !== undefined) fn.openIf(this.#ctx.get(gate).parts[0]!);
    if (mem.op === 'REG') {
      const cells = this.#register(mem, index);
      if (cells.length !== parts.length)
        refuse(told && `a register of ${mem.lanes} lanes is stored ${value.lanes} lanes`);
      for (let p = 0; p < parts.length; p++) fn.assign(cells[p]!, parts[p]!);
    } else {
      const { pointer, extra, cls } = this.#place(mem);
      if (cls === null) refuse(`PARAM ${slotOf(mem)} is read-only but stored to`);
      const { bytes, store } = storageOf(mem.dtype);
      const at = this.#addresses.of(pointer, extra, index, bytes, false);
      if (value.lanes === 1) fn.store(store, at.base, parts[0]!, at.offset, cls);
      else if (bits !== 0) {
        const { storeSmall, isShort } = dtypeCode();
        storeSmall(this.#ctx, bits, value.lanes, at, parts, cls, isShort(given, bits));
      } else this.#storeVector(mem.dtype, value.lanes, at, parts, cls);
    }
    if (gate !== undefined) fn.close();
  }

  atomic(n: KNodeOf<'ATOMIC'>): void {
    const [mem, index] = n.src;
    const { pointer, extra, cls } = this.#place(mem);
    const place = (): Address => this.#addresses.of(pointer, extra, index, 4, false);
    dtypeCode().lowerAtomic(this.#ctx, n, storageOf(mem.dtype), cls, place);
  }

  #loadVector(dtype: KNode['dtype'], lanes: number, at: Address, cls: MemoryClass | null): Val[] {
    const { fn } = this.#ctx;
    const reg = regOf(dtype);
    if (smallBits(dtype) !== 0) return dtypeCode().loadSmall(this.#ctx, dtype, lanes, at, cls);
    const one = (code: number, offset: number): Val => fn.load(code, T.v128, at.base, offset, cls);
    const count = partCount(lanes, reg.width);
    return Array.from({ length: count }, (_, p) => {
      if (reg.kind !== 'bool') return one(lanes * reg.width < 16 ? S.load64Zero : S.load, at.offset + p * 16);
      const raw =
        lanes === 2
          ? vop(this.#ctx, S.i32Splat, fn.load(W.i32Load16U, T.i32, at.base, at.offset, cls))
          : one(S.load32Zero, at.offset + p * 4);
      return vop(this.#ctx, S.i32Neg, vop(this.#ctx, S.i32ExtendLowI16U, vop(this.#ctx, S.i16ExtendLowI8U, raw)));
    });
  }

  #storeVector(dtype: KNode['dtype'], lanes: number, at: Address, parts: readonly Val[], cls: MemoryClass): void {
    const { fn } = this.#ctx;
    const reg = regOf(dtype);
    parts.forEach((v, p) => {
      if (reg.kind !== 'bool') {
        if (lanes * reg.width < 16) fn.store(S.store64Lane, at.base, v, at.offset, cls, 0);
        else fn.store(S.store, at.base, v, at.offset + p * 16, cls);
        return;
      }
      // The lowest byte of each lane, as 0 or 1.
      const ones = fn.v128(new Uint8Array(16).fill(1));
      const pattern = new Uint8Array(16).map((_, i) => (i & 3) * 4);
      const bytes = vop(this.#ctx, S.and, fn.op(S.shuffle, T.v128, [v, v], 0, pattern), ones);
      fn.store(lanes === 2 ? S.store16Lane : S.store32Lane, at.base, bytes, at.offset + p * 4, cls, 0);
    });
  }

  #place(mem: KNode): Place {
    let place = this.#places.get(mem);
    if (place === undefined) {
      place = this.#ctx.fn.speculate(() => this.#findPlace(mem));
      this.#places.set(mem, place);
    }
    return place;
  }

  #findPlace(mem: KNode): Place {
    const { fn, target } = this.#ctx;
    if (mem.op === 'PARAM') {
      const { slot, access } = mem.arg;
      const wide = target.addressBits === 64;
      const pointer = fn.op(wide ? W.i64Load : W.i32Load, wide ? T.i64 : T.i32, [this.#args], slot * 8);
      let cls: MemoryClass | null = null;
      if (access !== 'read') {
        cls = this.#slotClasses.get(slot) ?? {};
        this.#slotClasses.set(slot, cls);
      }
      return { pointer, extra: 0, cls };
    }
    if (mem.op === 'SHARED') {
      const extra = this.#scratchBytes;
      this.#scratchBytes += Math.ceil((mem.arg.length * storageOf(mem.dtype).bytes) / 64) * 64;
      if (this.#scratchBytes > target.sharedBytes) {
        refuse(
          told &&
            `SHARED memory of ${this.#scratchBytes} bytes is more than a thread's scratch of ${target.sharedBytes} bytes`,
        );
      }
      return { pointer: this.#scratch, extra, cls: mem };
    }
    return refuse(told && `${mem.op} is no memory that programs access`);
  }

  /** The cells of one register: as many as its lanes need. */
  #register(mem: KNodeOf<'REG'>, index: KNode): readonly Cell[] {
    const at = this.#addresses.constantIndex(index);
    if (at === null || at < 0 || at >= mem.arg.length)
      refuse(`register ${mem.arg.name}[${mem.arg.length}] needs a constant index in range: got ${at ?? index.op}`);
    let all = this.#registers.get(mem);
    if (all === undefined) this.#registers.set(mem, (all = []));
    const reg = regOf(mem.dtype);
    const type = mem.lanes === 1 ? reg.type : T.v128;
    const count = mem.lanes === 1 ? 1 : partCount(mem.lanes, reg.width);
    return (all[at] ??= Array.from({ length: count }, () => this.#ctx.fn.newCell(type)));
  }
}

function slotOf(mem: KNode): number {
  return mem.op === 'PARAM' ? mem.arg.slot : -1;
}

function isZero(n: KNode): boolean {
  return n.op === 'CONST' && Object.is(Number(n.arg.value), 0);
}
