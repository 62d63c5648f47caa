/** LOAD and STORE: pointers of memory objects, addresses from index sums, storage forms of dtypes, gates, checks. */
import { highOf, type KNode, type KNodeOf, linearOf, lowOf, type Program } from '@polygrad/core/kernel';
import { dtypeInfo } from '@polygrad/core/kernel/emitters';
import { type Block, further, type Memory as Place, type Reg, type Lowered } from '../form/code.ts';
import { type DType, kindOf, refuse, smallBits, widthOf } from '../target.ts';
import { isPacked } from './halves.ts';
import { makeParts, partBytes, usedBytes } from '../form/vector-parts.ts';
import type { Context, Access } from '../form/machine.ts';
import type { Linear } from './copies.ts';

function bytesOf(dtype: KNode['dtype']): number {
  return dtype === 'void' ? refuse('void has no place in memory') : dtypeInfo[dtype].bytes;
}

/**
 * Operations per moved byte from which on non-temporal stores gain nothing: with so much arithmetic the other stores cause no waiting.
 * Softmax has 3 and gains a quarter, gelu has 6 and loses a tenth (bench/results/2026-11-28-native.md).
 */
const mostArithmetic = 4;

const lineBytes = 64;
/** Bytes ahead of a load at which memory is prefetched: beyond the page, where the processor's own prefetching ends. */
const prefetchedAhead = 4096;
/** Larger steps leave pages in between out. */
const mostStep = 4096;
/** Operations per byte up to which loads come so fast that prefetching gains: a sum has a quarter, a sum of squares a half; maxima have more, and read 40 GB/s without. */
const mostSummed = 0.6;
/** Least part of an input that the program reads. */
const leastRead = 0.9;

/** What memory accesses need from the lowering of programs. */
export interface Scopes {
  /** The block of the current group: what depends on nothing else of the program is computed there. */
  readonly group: Block;
  readonly cost: Program['cost'];
  /** Groups along each axis. */
  readonly grid: readonly [number, number, number];
  /** A sum including what unrolled copies add to their counters, and the register of a term. */
  unshifted(form: Linear): Linear;
  term(t: KNode): Reg;
  /** The innermost running loop, with the position of its body in the program; or null. */
  readonly innermost: {
    readonly loop: KNode;
    readonly body: Program['body'];
    readonly from: number;
    readonly to: number;
  } | null;
}

/** A sum: that before it, and a term with its factor. */
interface Sum {
  readonly before: Reg | null;
  readonly coef: number;
  sum: Reg;
}

export class Accesses {
  /** True if a non-temporal store was written. */
  streamed = false;
  readonly #ctx: Context;
  readonly #scopes: Scopes;
  readonly #args: Reg;
  readonly #scratch: Reg;
  readonly #pointers = new Map<KNode, { readonly base: Reg; readonly offset: number; readonly length: number }>();
  /** Addresses and sign-extended sums. */
  readonly #made = new Map<string, Reg>();
  /** Sums by the register of their last term. */
  readonly #sums = new Map<Reg, Sum[]>();
  #scratchBytes = 0;

  constructor(ctx: Context, scopes: Scopes) {
    this.#ctx = ctx;
    this.#scopes = scopes;
    this.#args = ctx.b.parameter('args');
    this.#scratch = ctx.b.parameter('scratch');
  }

  /** The value of a SCALAR. */
  scalar(dtype: KNode['dtype'], slot: number): Lowered {
    const { b, machine, target } = this.#ctx;
    const kind = kindOf(dtype);
    const at: Place = { base: this.#args, index: null, scale: 1, offset: target.scalarOffset + slot * 8 };
    return b.in(b.root, () => ({ parts: [machine.access.scalar(b, kind, at)], width: widthOf(kind) }));
  }

  #pointer(mem: KNode): { readonly base: Reg; readonly offset: number; readonly length: number } {
    let found = this.#pointers.get(mem);
    if (found !== undefined) return found;
    const { b, machine, target } = this.#ctx;
    if (mem.op === 'PARAM') {
      const at: Place = { base: this.#args, index: null, scale: 1, offset: mem.arg.slot * 8 };
      found = { base: b.in(b.root, () => machine.basics.pointer(b, at)), offset: 0, length: mem.arg.length };
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

  /** The place of the elements from an index on, in the machine's addressing modes. */
  #at(mem: KNode, index: KNode, lanes: number, gate: Reg | null): Place {
    const at = this.#placeOf(mem, index, lanes, gate);
    const { b, machine } = this.#ctx;
    if (machine.basics.indexes || at.index === null) return at;
    const { base, index: by, scale, offset } = at as Place & { readonly base: Reg; readonly index: Reg };
    const make = (): Reg => machine.basics.address(b, { base, index: by, scale, offset: 0 });
    const reached = (address: Reg): Place => ({ base: address, index: null, scale: 1, offset });
    if (by.mutable && !by.isCounter) return reached(make());
    const key = `at ${base.id} ${by.id} ${scale}`;
    const old = this.#made.get(key);
    if (old !== undefined && this.#isOpen(old)) return reached(old);
    const made = b.in(this.#innermost(null, by), make);
    this.#made.set(key, made);
    return reached(made);
  }

  #placeOf(mem: KNode, index: KNode, lanes: number, gate: Reg | null): Place {
    const { b, target } = this.#ctx;
    const { base, offset, length } = this.#pointer(mem);
    const bytes = bytesOf(mem.dtype);
    const form = this.#scopes.unshifted(linearOf(index));
    if (target.checked === true) {
      const full = this.#sum(form.terms, form.coefs, form.offset);
      let at = full;
      if (gate !== null) {
        // A gated-off access is not checked either.
        at = b.integer(0);
        b.test(gate);
        b.take('ne', at, full);
      }
      b.compare(4, at, Math.max(0, length - lanes + 1));
      b.fault('ae');
      return { base, index: full, scale: bytes, offset };
    }
    let low = 0;
    let high = 0;
    for (let i = 0; i < form.terms.length; i++) {
      const c = form.coefs[i]!;
      const bounds = this.#boundsOf(form.terms[i]!);
      const least = bounds[0];
      const most = bounds[1];
      low += c * (c > 0 ? least : most);
      high += c * (c > 0 ? most : least);
    }
    const further_ = offset + form.offset * bytes;
    const near = Math.abs(further_) < 2 ** 31 - 4096;
    if (form.terms.length === 0 && near) return { base, index: null, scale: 1, offset: further_ };
    if (!near || form.terms.length === 0)
      return { base, index: this.#sum(form.terms, form.coefs, form.offset), scale: bytes, offset };
    // A 32-bit sum between 0 and 2^31 extends to 64 bits unchanged. Otherwise the sum is taken without its constant; if that is positive the rest may be negative, and is sign-extended.
    if (!(low >= 0 && high < 2 ** 31)) {
      const sum = this.#sum(form.terms, form.coefs, 0);
      return { base, index: form.offset <= 0 ? sum : this.#extended(sum), scale: bytes, offset: further_ };
    }
    const scale = form.terms.length === 1 ? form.coefs[0]! * bytes : 0;
    if (scale === 1 || scale === 2 || scale === 4 || scale === 8)
      return { base, index: this.#scopes.term(form.terms[0]!), scale, offset: further_ };
    return { base, index: this.#sum(form.terms, form.coefs, 0), scale: bytes, offset: further_ };
  }

  #boundsOf(t: KNode): readonly [number, number] {
    if (t.op === 'SPECIAL' && t.arg.kind === 'group') return [0, this.#scopes.grid[t.arg.axis] - 1];
    // The bits of a small unsigned number are the same number.
    if (t.op === 'BITCAST' && t.src[0].dtype === 'uint32' && highOf(t.src[0]) < 2 ** 31)
      return this.#boundsOf(t.src[0]);
    return [lowOf(t), highOf(t)];
  }

  /** Sign-extends a 32-bit sum to 64. */
  #extended(sum: Reg): Reg {
    const { b } = this.#ctx;
    const make = (): Reg => this.#ctx.machine.basics.extend(b, sum);
    if (sum.mutable && !sum.isCounter) return make();
    const key = `extended ${sum.id}`;
    const old = this.#made.get(key);
    if (old !== undefined && this.#isOpen(old)) return old;
    const block = sum.block.depth < this.#scopes.group.depth ? this.#scopes.group : sum.block;
    const made = b.in(block, make);
    this.#made.set(key, made);
    return made;
  }

  /** A 32-bit sum of products: parts that change rarely are added first, outside of the loops that do not change them. */
  #sum(terms: readonly KNode[], coefs: readonly number[], offset: number): Reg {
    const { b, machine } = this.#ctx;
    const regs = new Array<Reg>(terms.length);
    const factors = new Array<number>(terms.length);
    for (let i = 0; i < terms.length; i++) {
      const reg = this.#scopes.term(terms[i]!);
      let at = i;
      for (; at > 0 && regs[at - 1]!.block.depth > reg.block.depth; at--) {
        regs[at] = regs[at - 1]!;
        factors[at] = factors[at - 1]!;
      }
      regs[at] = reg;
      factors[at] = coefs[i]!;
    }
    let sum: Reg | null = null;
    /** False after a register that may change at any time. */
    let kept = true;
    for (let i = 0; i < regs.length; i++) {
      const reg = regs[i]!;
      const coef = factors[i]!;
      kept &&= !reg.mutable || reg.isCounter;
      sum = kept ? this.#sumOf(sum, reg, coef) : machine.basics.addProduct(b, sum, reg, coef);
    }
    if (sum === null) return b.integer(offset);
    if (offset === 0) return sum;
    return machine.basics.add(b, sum, offset);
  }

  /** A sum with one more term: one that is there, or a new one in the inner block of both. */
  #sumOf(before: Reg | null, reg: Reg, coef: number): Reg {
    const { b, machine } = this.#ctx;
    let list = this.#sums.get(reg);
    if (list === undefined) this.#sums.set(reg, (list = []));
    let known: Sum | undefined;
    for (let i = 0; i < list.length && known === undefined; i++)
      if (list[i]!.before === before && list[i]!.coef === coef) known = list[i];
    if (known !== undefined && this.#isOpen(known.sum)) return known.sum;
    const sum = b.in(this.#innermost(before, reg), () => machine.basics.addProduct(b, before, reg, coef));
    if (known === undefined) list.push({ before, coef, sum });
    else known.sum = sum;
    return sum;
  }

  #isOpen({ block: own }: Reg): boolean {
    for (let block: Block | null = this.#ctx.b.current; block !== null; block = block.parent)
      if (block === own) return true;
    return false;
  }

  /** The inner one of the blocks of two registers. */
  #innermost(sum: Reg | null, reg: Reg): Block {
    const block = sum !== null && sum.block.depth > reg.block.depth ? sum.block : reg.block;
    return block.depth < this.#scopes.group.depth ? this.#scopes.group : block;
  }

  /** `packed`: 16-bit words stay as they are in memory. */
  load(n: KNodeOf<'LOAD'>, splat: number, packed: boolean): Lowered {
    const [mem, index, gate, alt] = n.src;
    const { b, machine, masks } = this.#ctx;
    const { access } = machine;
    const kind = kindOf(n.dtype);
    const width = widthOf(kind);
    const bytes = bytesOf(mem.dtype);
    const condition = gate === undefined ? null : this.#ctx.get(gate).parts[0]!;
    let at = this.#at(mem, index, n.lanes, condition);
    if (condition !== null) {
      at = this.#orZeros(at, condition, n.lanes * bytes);
    }
    const otherwise = condition === null || alt === undefined || isZero(alt) ? null : this.#ctx.get(alt);
    if (n.lanes === 1) {
      if (splat > 0 && otherwise === null && bytes >= 4)
        return { parts: [access.spread(b, width, partBytes(this.#ctx, splat, width), at)], width };
      const v = access.element(b, mem.dtype as DType, at);
      if (otherwise === null) return { parts: [v], width };
      return { parts: [access.choose(this.#ctx, condition!, v, otherwise.parts[0]!)], width };
    }
    if (condition === null) this.#prefetch(n, at);
    const loaded = packed ? this.#packedAt(n.lanes, at) : this.#vectorAt(n.dtype as DType, n.lanes, at);
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

  /** A vector of elements that lie apart, one by one. */
  stepped({ src: [mem, index], lanes, dtype }: KNodeOf<'LOAD'>, step: number): Lowered {
    const { machine, b } = this.#ctx;
    const bytes = bytesOf(dtype);
    const at = this.#at(mem, index, (lanes - 1) * step + 1, null);
    const element = (i: number): Reg => machine.access.element(b, dtype, further(at, i * step * bytes));
    return machine.lanes.gather(this.#ctx, kindOf(dtype), lanes, element);
  }

  /** One of them, so many elements from the first. */
  element({ src: [mem, index], dtype }: KNodeOf<'LOAD'>, by: number): Lowered {
    const { machine, b } = this.#ctx;
    const at = further(this.#at(mem, index, by + 1, null), by * bytesOf(dtype));
    return { parts: [machine.access.element(b, dtype, at)], width: widthOf(kindOf(dtype)) };
  }

  /** A place, or that of zeros where a gate is false. */
  #orZeros(at: Place, condition: Reg, bytes: number): Place {
    const { b, machine } = this.#ctx;
    const zeros = machine.basics.address(b, b.zeros(bytes));
    const address = machine.basics.address(b, at);
    const chosen = b.copy(zeros);
    b.test(condition);
    b.take('ne', chosen, address);
    return { base: chosen, index: null, scale: 1, offset: 0 };
  }

  /** Elements of four bytes, `from` elements behind those of a load, or zeros beside its gate; all up to them may be read. */
  row({ src: [mem, index, gate] }: KNodeOf<'LOAD'>, from: number, lanes: number): Reg {
    const condition = gate === undefined ? null : this.#ctx.get(gate).parts[0]!;
    const at = further(this.#at(mem, index, from + lanes, condition), from * 4);
    const place = condition === null ? at : this.#orZeros(at, condition, lanes * 4);
    return this.#ctx.machine.access.part(this.#ctx.b, lanes * 4, place);
  }

  /**
   * Prefetches memory that a later iteration of the innermost loop reads, in loops that read more than caches hold and write nothing: a sum of 64 MiB takes a
   * sixth less time. Sums of columns, which write cells of group memory and read four rows, take a fifth more.
   */
  #prefetch({ src: [mem, index], lanes }: KNodeOf<'LOAD'>, at: Place): void {
    const { b, machine } = this.#ctx;
    const { innermost, cost, grid } = this.#scopes;
    const { streams } = machine.access;
    if (streams === null || !this.#isLarge(mem, 'read', mostSummed) || innermost === null) return;
    const bytes = bytesOf(mem.dtype);
    if (lanes * bytes < lineBytes) return;
    // Where parts of rows are read, what is ahead of their ends is not.
    const read = cost.bytes * grid[0] * grid[1] * grid[2];
    if (read < leastRead * mem.arg.length * bytes) return;
    const { terms, coefs } = linearOf(index);
    const step = (coefs[terms.indexOf(innermost.loop)] ?? 0) * bytes;
    if (step < lineBytes || step > mostStep || this.#stores(innermost)) return;
    for (let line = 0; line < lanes * bytes; line += lineBytes)
      streams.prefetch(b, further(at, prefetchedAhead + line));
  }

  #stores({ body, from, to }: NonNullable<Scopes['innermost']>): boolean {
    for (let i = from; i < to; i++) {
      const n = body[i]!;
      if ((n.op === 'STORE' && n.src[0].op !== 'REG') || n.op === 'ATOMIC') return true;
    }
    return false;
  }

  #packedAt(lanes: number, at: Place): Lowered {
    const used = usedBytes(this.#ctx, lanes, 4) / 2;
    const { b, machine } = this.#ctx;
    return makeParts(this.#ctx, lanes, 4, (p) => machine.access.part(b, used, further(at, p * used)));
  }

  #vectorAt(dtype: DType, lanes: number, at: Place): Lowered {
    const { b, machine, masks } = this.#ctx;
    const { access } = machine;
    const kind = kindOf(dtype);
    if (kind === 'bool') return masks.load(at, lanes);
    const bits = smallBits(dtype);
    if (bits !== 0) return { parts: access.small(this.#ctx, at, lanes, bits === 8 ? 1 : 2, kind === 'i32'), width: 4 };
    const width = widthOf(kind);
    const used = usedBytes(this.#ctx, lanes, width);
    return makeParts(this.#ctx, lanes, width, (p) => access.part(b, used, further(at, p * used)));
  }

  /** Stores whatever the gate says: it is a condition around. */
  store(n: KNodeOf<'STORE'>): void {
    const [mem, index, value] = n.src;
    const { b, machine } = this.#ctx;
    const { access } = machine;
    const kind = kindOf(mem.dtype);
    const v = this.#ctx.get(value);
    if (mem.op === 'PARAM' && mem.arg.access === 'read') refuse(`PARAM ${mem.arg.slot} is read-only but stored to`);
    const at = this.#at(mem, index, value.lanes, null);
    const bits = smallBits(mem.dtype as DType);
    if (value.lanes === 1) access.storeElement(b, mem.dtype as DType, at, v.parts[0]!);
    else if (kind === 'bool') this.#ctx.masks.store(at, v, value.lanes);
    else if (this.#ctx.uses(value) === 1 && isPacked(value, n))
      this.#storeParts(access.storePart, v.parts, usedBytes(this.#ctx, value.lanes, 4) / 2, at);
    else if (bits !== 0) access.storeSmall(this.#ctx, at, v.parts, value.lanes, bits === 8 ? 1 : 2);
    else {
      const used = usedBytes(this.#ctx, value.lanes, widthOf(kind));
      const streams = used >= 16 && this.#isStreamed(n, v.parts.length * used) ? access.streams : null;
      if (streams === null) this.#storeParts(access.storePart, v.parts, used, at);
      else {
        streams.test(b, at, used);
        b.openUnless('ne');
        this.#storeParts(streams.store, v.parts, used, at);
        b.closeIf();
        streams.test(b, at, used);
        b.openUnless('e');
        this.#storeParts(access.storePart, v.parts, used, at);
        b.closeIf();
        this.streamed = true;
      }
    }
  }

  #storeParts(store: Access['storePart'], parts: readonly Reg[], bytes: number, at: Place): void {
    for (let p = 0; p < parts.length; p++) store(this.#ctx.b, bytes, further(at, p * bytes), parts[p]!);
  }

  /** True if the stores of one iteration of the innermost loop are adjacent, and those of the next iteration follow them. */
  #fillsLines({ src: [mem, index] }: KNodeOf<'STORE'>): boolean {
    const { innermost } = this.#scopes;
    if (innermost === null) return false;
    const { terms, coefs, offset } = linearOf(index);
    const step = coefs[terms.indexOf(innermost.loop)] ?? 0;
    let elements = 0;
    for (let i = innermost.from; i < innermost.to; i++) {
      const n = innermost.body[i]!;
      if (n.op !== 'STORE' || n.src[0] !== mem) continue;
      const other = linearOf(n.src[1]);
      if (other.terms.length !== terms.length || other.coefs[other.terms.indexOf(innermost.loop)] !== step)
        return false;
      if (Math.abs(other.offset - offset) >= step) return false;
      elements += n.src[2].lanes;
    }
    return elements === step;
  }

  /**
   * True for large outputs of memory-bound kernels that are not read here. They are stored in whole cache lines, at once or by consecutive
   * iterations of the innermost loop. Lines that are written in distant parts would go to memory in parts.
   */
  #isStreamed(n: KNodeOf<'STORE'>, bytes: number): boolean {
    return this.#isLarge(n.src[0], 'write', mostArithmetic) && (bytes >= lineBytes || this.#fillsLines(n));
  }

  /** True for a tensor that caches do not hold, with this access, in a program of at most so many operations per moved byte. */
  #isLarge(mem: KNode, access: 'read' | 'write', most: number): mem is KNodeOf<'PARAM'> {
    const { streamBytes } = this.#ctx.target;
    if (streamBytes === undefined || mem.op !== 'PARAM' || mem.arg.access !== access) return false;
    const { flops, bytes } = this.#scopes.cost;
    return flops <= most * bytes && mem.arg.length * bytesOf(mem.dtype) >= streamBytes;
  }
}

/** True for a constant of zeros, all bits of it. */
export function isZero(n: KNode): boolean {
  return n.op === 'CONST' && Object.is(Number(n.arg.value), 0);
}
