/** LOAD and STORE: pointers of memory objects, addresses from index sums, storage forms of dtypes, gates, checks. */
import { highOf, type KNode, type KNodeOf, linearOf, lowOf } from '@polygrad/core/kernel';
import type { Block, Memory as Place, Reg } from '../code.ts';
import { further } from '../builder.ts';
import { type DType, isFloat, kindOf, refuse, smallBits, widthOf } from '../target.ts';
import { type Context, type Lowered, makeParts, partBytes, usedBytes } from './context.ts';
import { loadBytes, storeBytes } from './masks.ts';

const elementBytes: Readonly<Partial<Record<DType, number>>> = {
  float32: 4,
  float64: 8,
  int32: 4,
  uint32: 4,
  int64: 8,
  uint64: 8,
  int8: 1,
  uint8: 1,
  int16: 2,
  uint16: 2,
  bool: 1,
};

function bytesOf(dtype: KNode['dtype']): number {
  return elementBytes[dtype as DType] ?? refuse(`${dtype} has no place in memory here`);
}

/** What the lowering of programs tells of blocks. */
export interface Scopes {
  /** The block of the running group: what hangs on nothing else of the program is made there. */
  readonly group: Block;
  /** Groups along each axis. */
  readonly grid: readonly [number, number, number];
}

export class Accesses {
  readonly #ctx: Context;
  readonly #scopes: Scopes;
  readonly #args: Reg;
  readonly #scratch: Reg;
  readonly #pointers = new Map<KNode, { readonly base: Reg; readonly offset: number; readonly length: number }>();
  readonly #sums = new Map<string, Reg>();
  #scratchBytes = 0;

  constructor(ctx: Context, scopes: Scopes) {
    this.#ctx = ctx;
    this.#scopes = scopes;
    this.#args = ctx.b.parameter('args');
    this.#scratch = ctx.b.parameter('scratch');
  }

  /** The value of a SCALAR. */
  scalar(dtype: KNode['dtype'], slot: number): Lowered {
    const { b, target } = this.#ctx;
    const kind = kindOf(dtype);
    const width = widthOf(kind);
    const at: Place = { base: this.#args, index: null, scale: 1, offset: target.scalarOffset + slot * 8 };
    return b.in(b.root, () => {
      const key = kind === 'f32' ? 'vmovss' : kind === 'f64' ? 'vmovsd' : 'mov';
      return { parts: [b.op(key, isFloat(kind) ? 16 : width, at)], width };
    });
  }

  #pointer(mem: KNode): { readonly base: Reg; readonly offset: number; readonly length: number } {
    let found = this.#pointers.get(mem);
    if (found !== undefined) return found;
    const { b, target } = this.#ctx;
    if (mem.op === 'PARAM') {
      const at: Place = { base: this.#args, index: null, scale: 1, offset: mem.arg.slot * 8 };
      found = { base: b.in(b.root, () => b.op('mov', 8, at)), offset: 0, length: mem.arg.length };
    } else if (mem.op === 'SHARED') {
      found = { base: this.#scratch, offset: this.#scratchBytes, length: mem.arg.length };
      this.#scratchBytes += Math.ceil((mem.arg.length * bytesOf(mem.dtype)) / 64) * 64;
      if (this.#scratchBytes > target.sharedBytes)
        refuse(
          `SHARED memory of ${this.#scratchBytes} bytes is more than a thread's scratch of ${target.sharedBytes} bytes`,
        );
    } else return refuse(`${mem.op} is no memory that programs access`);
    this.#pointers.set(mem, found);
    return found;
  }

  /** The place of elements from an index on. */
  #at(mem: KNode, index: KNode, lanes: number, gate: Reg | null): Place {
    const { b, target } = this.#ctx;
    const { base, offset, length } = this.#pointer(mem);
    const bytes = bytesOf(mem.dtype);
    const form = linearOf(index);
    if (target.checked === true) {
      const full = this.#sum(form.terms, form.coefs, form.offset);
      let at = full;
      if (gate !== null) {
        // What is not touched is not checked either.
        at = b.integer(0);
        b.ins('test', 4, gate, gate);
        b.ins('cmovne', 8, at, full);
      }
      b.ins('cmp:constant', 4, at, Math.max(0, length - lanes + 1));
      b.fault('ae');
      return { base, index: full, scale: bytes, offset };
    }
    let low = 0;
    let high = 0;
    form.terms.forEach((t, i) => {
      const c = form.coefs[i]!;
      const [least, most] = this.#boundsOf(t);
      low += c * (c > 0 ? least : most);
      high += c * (c > 0 ? most : least);
    });
    const further_ = offset + form.offset * bytes;
    const near = Math.abs(further_) < 2 ** 31 - 4096;
    if (form.terms.length === 0 && near) return { base, index: null, scale: 1, offset: further_ };
    if (!near || form.terms.length === 0)
      return { base, index: this.#sum(form.terms, form.coefs, form.offset), scale: bytes, offset };
    // Sums of 32 bits that stay between 0 and 2^31 are what they are in 64. Others are the index less the constant: negative only where that is not.
    if (!(low >= 0 && high < 2 ** 31)) {
      const sum = this.#sum(form.terms, form.coefs, 0);
      return { base, index: form.offset <= 0 ? sum : this.#extended(sum), scale: bytes, offset: further_ };
    }
    const [first] = form.coefs;
    if (form.terms.length === 1 && first! > 0 && [1, 2, 4, 8].includes(first! * bytes))
      return { base, index: this.#ctx.get(form.terms[0]!).parts[0]!, scale: first! * bytes, offset: further_ };
    return { base, index: this.#sum(form.terms, form.coefs, 0), scale: bytes, offset: further_ };
  }

  #boundsOf(t: KNode): readonly [number, number] {
    if (t.op === 'SPECIAL' && t.arg.kind === 'group') return [0, this.#scopes.grid[t.arg.axis] - 1];
    return [lowOf(t), highOf(t)];
  }

  /** A sum of 32 bits with its sign in 64. */
  #extended(sum: Reg): Reg {
    const { b } = this.#ctx;
    const make = (): Reg => b.op('movsxd', 8, sum);
    if (sum.mutable && !isCounter(sum)) return make();
    const key = `extended ${sum.id}`;
    const old = this.#open(key);
    if (old !== undefined) return old;
    const block = sum.block.depth < this.#scopes.group.depth ? this.#scopes.group : sum.block;
    const made = b.in(block, make);
    this.#sums.set(key, made);
    return made;
  }

  /** A sum of products in 32 bits: parts that change rarely are added first, outside of the loops that do not change them. */
  #sum(terms: readonly KNode[], coefs: readonly number[], offset: number): Reg {
    const { b } = this.#ctx;
    const known = terms.map((t, i) => ({ reg: this.#ctx.get(t).parts[0]!, coef: coefs[i]! }));
    known.sort((x, y) => x.reg.block.depth - y.reg.block.depth);
    let sum: Reg | null = null;
    let key = '';
    /** False behind a register that changes at any time. */
    let kept = true;
    for (const { reg, coef } of known) {
      key += ` ${reg.id}*${coef}`;
      kept &&= !reg.mutable || isCounter(reg);
      const old: Reg | undefined = kept ? this.#open(key) : undefined;
      if (old !== undefined) {
        sum = old;
        continue;
      }
      const before: Reg | null = sum;
      const block: Block = kept ? this.#innermost(before, reg) : b.current;
      const next: Reg = b.in(block, () => this.#add(before, reg, coef));
      if (kept) this.#sums.set(key, next);
      sum = next;
    }
    if (sum === null) return b.integer(offset);
    if (offset === 0) return sum;
    return b.two('add:constant', 4, sum, offset);
  }

  #open(key: string): Reg | undefined {
    const old = this.#sums.get(key);
    if (old === undefined) return undefined;
    for (let block: Block | null = this.#ctx.b.current; block !== null; block = block.parent)
      if (block === old.block) return old;
    return undefined;
  }

  /** The inner one of the blocks of two registers. */
  #innermost(sum: Reg | null, reg: Reg): Block {
    const block = sum !== null && sum.block.depth > reg.block.depth ? sum.block : reg.block;
    return block.depth < this.#scopes.group.depth ? this.#scopes.group : block;
  }

  #add(sum: Reg | null, x: Reg, coef: number): Reg {
    const { b } = this.#ctx;
    const product = (): Reg => {
      const size = Math.abs(coef);
      if (coef === 1) return x;
      if (Number.isInteger(Math.log2(size)) && coef > 0) return b.two('shl', 4, x, Math.log2(size));
      return b.op('imul:constant', 4, x, coef);
    };
    if (sum === null) return product();
    if (coef === 1 || coef === 2 || coef === 4 || coef === 8)
      return b.op('lea', 4, { base: sum, index: x, scale: coef, offset: 0 });
    return b.op('lea', 4, { base: sum, index: product(), scale: 1, offset: 0 });
  }

  load(n: KNodeOf<'LOAD'>, splat: number): Lowered {
    const [mem, index, gate, alt] = n.src;
    const { b, masks } = this.#ctx;
    const kind = kindOf(n.dtype);
    const width = widthOf(kind);
    const bytes = bytesOf(mem.dtype);
    const condition = gate === undefined ? null : this.#ctx.get(gate).parts[0]!;
    let at = this.#at(mem, index, n.lanes, condition);
    if (condition !== null) {
      // Where the gate is false zeros are read instead.
      const zeros = b.op('lea', 8, b.zeros(n.lanes * bytes));
      const address = b.op('lea', 8, at);
      const chosen = b.copy(zeros);
      b.ins('test', 4, condition, condition);
      b.ins('cmovne', 8, chosen, address);
      at = { base: chosen, index: null, scale: 1, offset: 0 };
    }
    const otherwise = condition === null || alt === undefined || isZero(alt) ? null : this.#ctx.get(alt);
    if (n.lanes === 1) {
      if (splat > 0 && otherwise === null && bytes >= 4) {
        const size = partBytes(this.#ctx, splat, width);
        const key = width === 4 ? 'vbroadcastss' : size === 16 ? 'vmovddup' : 'vbroadcastsd';
        return { parts: [b.op(key, size, at)], width };
      }
      const v = this.#scalarAt(mem.dtype as DType, at);
      if (otherwise === null) return { parts: [v], width };
      return { parts: [choose(this.#ctx, condition!, v, otherwise.parts[0]!, n.lanes)], width };
    }
    const loaded = this.#vectorAt(n.dtype as DType, n.lanes, at);
    if (otherwise === null) return loaded;
    const mask = masks.splat(condition!, n.lanes);
    if (kind === 'bool') {
      return masks.logic(
        'OR',
        masks.logic('AND', mask, loaded, n.lanes),
        masks.logic('ANDNOT', otherwise, mask, n.lanes),
        n.lanes,
      );
    }
    return { parts: masks.select(mask, loaded.parts, otherwise.parts, n.lanes, width), width };
  }

  /** So many elements of four bytes, which lie `from` elements behind what a load reads; all up to them may be read. */
  row({ src: [mem, index] }: KNodeOf<'LOAD'>, from: number, lanes: number): Reg {
    const at = this.#at(mem, index, from + lanes, null);
    const place = further(at, from * 4);
    if (lanes === 1) return this.#ctx.b.op('vmovss', 16, place);
    return lanes === 2 ? this.#ctx.b.op('vmovsd', 16, place) : this.#ctx.b.op('vmovups', lanes * 4, place);
  }

  #scalarAt(dtype: DType, at: Place): Reg {
    const { b } = this.#ctx;
    switch (dtype) {
      case 'float32':
        return b.op('vmovss', 16, at);
      case 'float64':
        return b.op('vmovsd', 16, at);
      case 'int64':
      case 'uint64':
        return b.op('mov', 8, at);
      case 'int8':
        return b.op('movsx:byte', 4, at);
      case 'int16':
        return b.op('movsx:word', 4, at);
      case 'uint8':
      case 'bool':
        return b.op('movzx:byte', 4, at);
      case 'uint16':
        return b.op('movzx:word', 4, at);
      default:
        return b.op('mov', 4, at);
    }
  }

  #vectorAt(dtype: DType, lanes: number, at: Place): Lowered {
    const { b, masks } = this.#ctx;
    const kind = kindOf(dtype);
    if (kind === 'bool') return masks.load(at, lanes);
    const bits = smallBits(dtype);
    if (bits !== 0) return { parts: loadBytes(this.#ctx, at, lanes, bits === 8 ? 1 : 2, kind === 'i32'), width: 4 };
    const width = widthOf(kind);
    const used = usedBytes(this.#ctx, lanes, width);
    return makeParts(this.#ctx, lanes, width, (p) => {
      const place = further(at, p * used);
      return used === 8 ? b.op('vmovsd', 16, place) : b.op('vmovups', used, place);
    });
  }

  store(n: KNodeOf<'STORE'>): void {
    const [mem, index, value, gate] = n.src;
    const { b } = this.#ctx;
    const kind = kindOf(mem.dtype);
    const v = this.#ctx.get(value);
    const condition = gate === undefined ? null : this.#ctx.get(gate).parts[0]!;
    if (mem.op === 'PARAM' && mem.arg.access === 'read') refuse(`PARAM ${mem.arg.slot} is read-only but stored to`);
    if (condition !== null) b.openIf(condition);
    const at = this.#at(mem, index, value.lanes, null);
    const bits = smallBits(mem.dtype as DType);
    if (value.lanes === 1) {
      const [r] = v.parts;
      if (kind === 'f32') b.ins('vmovss:store', 16, at, r!);
      else if (kind === 'f64') b.ins('vmovsd:store', 16, at, r!);
      else if (bits === 16) b.ins('mov:word', 4, at, r!);
      else if (bits === 8 || kind === 'bool') b.ins('mov:byte', 4, at, r!);
      else b.ins('mov:store', widthOf(kind), at, r!);
    } else if (kind === 'bool') this.#ctx.masks.store(at, v, value.lanes);
    else if (bits !== 0) storeBytes(this.#ctx, at, v.parts, value.lanes, bits === 8 ? 1 : 2);
    else {
      const used = usedBytes(this.#ctx, value.lanes, widthOf(kind));
      v.parts.forEach((part, p) => {
        const place = further(at, p * used);
        if (used === 8) b.ins('vmovsd:store', 16, place, part);
        else b.ins('vmovups:store', used, place, part);
      });
    }
    if (condition !== null) b.closeIf();
  }
}

/** Counters change between iterations, at their ends; registers of programs anywhere. */
function isCounter(reg: Reg): boolean {
  return reg.mutable && counters.has(reg);
}

const counters = new WeakSet<Reg>();

/** Says that a register is the counter of a loop whose block it is made in. */
export function markCounter(reg: Reg): void {
  counters.add(reg);
}

function choose({ b, target }: Context, condition: Reg, yes: Reg, no: Reg, _lanes: number): Reg {
  if (yes.cls === 'g') {
    const d = b.copy(no);
    b.ins('test', 4, condition, condition);
    b.ins('cmovne', 8, d, yes);
    return d;
  }
  if (target.isa === 'x64-v4') {
    const d = b.reg('v');
    const all = b.copy(condition);
    b.ins('neg', 4, all);
    b.masked('vblendmps', 16, b.op('kmovd', 8, all), false, d, no, yes);
    return d;
  }
  const all = b.copy(condition);
  b.ins('neg', 8, all);
  return b.op('vblendvps', 16, no, yes, b.op('vmovq', 16, all));
}

function isZero(n: KNode): boolean {
  return n.op === 'CONST' && Object.is(Number(n.arg.value), 0);
}
