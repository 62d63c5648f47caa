/**
 * `ProgramBuilder`: writes stage B programs.
 *
 * Statements go where they are called. Pure expressions are placed lazily, when a statement needs them, in the outermost
 * block where their sources are available; equal expressions are computed once per open block. Reads of mutable memory
 * (REG, SHARED, written PARAMs) made with `load` happen where they are called; those of SHARED that are expressions are made again
 * once something has been stored there. A read of a read-only PARAM never leaves an
 * IF or a loop that may run zero times: its index and its gate may rest on what holds there.
 */
import { told } from '#shown-as';
import { fault } from '../../shape/errors.ts';
import type { DType } from '../../shape/dtype.ts';
import { checkStored, Exprs, uniqueNode, withSources } from '../expr.ts';
import type { KArg, KArgs, KNode, KNodeOf, Program, ProgramNode } from '../ir.ts';
import { type Known, lowOf, newMark } from '../node.ts';
import { programOf } from '../program.ts';
import { fromLinear, linearOf } from '../simplify/integers.ts';

// Blocks of a program being written: the body, loops and IFs, as a tree until the program is built.

export interface Block {
  readonly parent: Block | null;
  readonly depth: number;
  /** True where entering is not certain: IF, and loops that may run zero times. */
  readonly maybe: boolean;
  readonly items: (ProgramNode | Block)[];
  open: boolean;
}

/** An empty open block. */
function newBlock(parent: Block | null, maybe: boolean): Block {
  return { parent, depth: parent === null ? 0 : parent.depth + 1, maybe, items: [], open: true };
}

/**
 * Writes the block backwards into `out`, leaving out values that nothing uses and blocks without effect. Recursion goes
 * as deep as loops are nested.
 */
export function writeBlock(block: Block, used: number, out: ProgramNode[]): boolean {
  const start = out.length;
  let effect = false;
  for (let i = block.items.length - 1; i >= 0; i--) {
    const item = block.items[i]!;
    if ('items' in item) {
      if (writeBlock(item, used, out)) effect = true;
      continue;
    }
    const { op } = item;
    if (op === 'LOOP' || op === 'IF' || op === 'ENDLOOP' || op === 'ENDIF') {
      if (i === 0 && !effect) {
        out.length = start;
        return false;
      }
    } else if (item.dtype === 'void') effect = true;
    else if ((item as Known).mark !== used) continue;
    const { src } = item;
    for (let k = 0; k < src.length; k++) (src[k] as Known).mark = used;
    out.push(item);
  }
  return effect;
}

// Order of the terms of an index sum inside a program: outer blocks first, constant last.
//
// `row * 768 + column + 1` with `row` from an outer loop is then computed as `(row * 768) + column`, whose first part
// stays outside. All accesses at constant distances share the sum before the constant.

/** The terms of an int32 sum that has several of them, or null. */
function sumTerms(n: KNode): readonly KNode[] | null {
  if ((n.op !== 'ADD' && n.op !== 'SUB') || n.dtype !== 'int32' || n.lanes !== 1) return null;
  const form = linearOf(n);
  return form.terms.length < 2 || form.terms.includes(n) ? null : form.terms;
}

/** The same sum with its terms in placement order. */
function depthOrdered(e: Exprs, n: KNode, depthOf: (term: KNode) => number): KNode {
  const form = linearOf(n);
  const depths = form.terms.map(depthOf);
  return fromLinear(e, form, (i, j) => depths[i]! - depths[j]!);
}

/** Where an expression has been placed, and as which node of the body. */
interface Placed {
  /** The body that it is in. Not the builder: nodes would keep all that it has made and left out. */
  readonly by: Block;
  readonly block: Block;
  readonly node: ProgramNode;
  /** SHARED that its value was read from, if any, and how many stores there had been anywhere. */
  readonly reads: ReadonlySet<KNode> | undefined;
  readonly stores: number;
}

/** What a program is besides its body: name, grid, group, cost. */
export interface BuildOptions {
  readonly name: string;
  readonly grid?: readonly [number, number, number];
  readonly groups?: KNode | undefined;
  readonly group?: readonly [number, number, number];
  readonly cost?: { readonly flops: number; readonly bytes: number };
  readonly transforms?: Program['transforms'];
  /** All parameters in slot order; by default those the body uses. */
  readonly params?: readonly KNodeOf<'PARAM'>[];
  readonly scalars?: readonly DType[];
}

/** True for memory whose contents a kernel may change. */
function isMutable(mem: KNode): boolean {
  return mem.op !== 'PARAM' || mem.arg.access !== 'read';
}

/**
 * Writes one program, statement after statement.
 *
 * @example
 * const p = new ProgramBuilder();
 * const { e } = p;
 * const x = e.param(0, 'float32', 'read', 4);
 * const y = e.param(1, 'float32', 'write', 4);
 * p.loop(4, (i) => p.store(y, i, e.add(p.load(x, i), 1)));
 * const program = p.build({ name: 'increment' });
 * const result = new Float32Array(4);
 * interpret(program, [Float32Array.of(1, 2, 3, 4), result]);
 * result; // [2, 3, 4, 5]
 */
export class ProgramBuilder {
  readonly e: Exprs;
  #root: Block = newBlock(null, false);
  #block: Block = this.#root;
  #params = new Map<number, KNodeOf<'PARAM'>>();
  #scalars = new Map<number, DType>();
  /** How many stores there have been when SHARED was last stored to. */
  #stored = new Map<KNode, number>();
  #stores = 0;

  constructor(e: Exprs = new Exprs()) {
    this.e = e;
  }

  // --- control

  /** A loop over 0 .. extent-1; constant extents 0 and 1 make no loop. */
  loop(extent: number | KNode, body: (i: KNode) => void, arg: KArgs['LOOP'] = null): void {
    const count = typeof extent === 'number' ? this.e.i32(extent) : extent;
    if (count.op === 'CONST') {
      const n = count.arg.value as number;
      if (n <= 0) return;
      if (n === 1) {
        body(this.e.i32(0));
        return;
      }
    }
    const limit = this.place(count);
    const loop = uniqueNode('LOOP', 'int32', 1, [limit], arg);
    this.#inBlock(loop, lowOf(count) < 1, 'ENDLOOP', () => body(loop));
  }

  /** Runs the body where the condition holds; constant conditions make no IF. */
  ifThen(cond: KNode, body: () => void): void {
    if (cond.op === 'CONST') {
      if (cond.arg.value !== 0) body();
      return;
    }
    this.#inBlock(uniqueNode('IF', 'void', 1, [this.place(cond)], null), true, 'ENDIF', body);
  }

  #inBlock(opener: ProgramNode, maybe: boolean, end: 'ENDLOOP' | 'ENDIF', body: () => void): void {
    const outer = this.#block;
    const block = newBlock(outer, maybe);
    outer.items.push(block);
    block.items.push(opener);
    this.#setPlaced(opener, block);
    this.#block = block;
    body();
    this.#block = outer;
    block.open = false;
    if (block.items.length === 1) outer.items.pop();
    else block.items.push(uniqueNode(end, 'void', 1, [], null));
  }

  /** Threads wait: all of the group, or those of each part of so many neighbours. */
  barrier(part?: number | null): void {
    this.#block.items.push(uniqueNode('BARRIER', 'void', 1, [], part ? { part } : null));
  }

  /** The values of all threads of a subgroup in one, here and now: SUBGROUP of ir/ir.ts. */
  subgroup(op: KArgs['SUBGROUP']['op'], value: KNode): KNode {
    if (value.op === 'CONST' && (op === 'max' || op === 'min')) return value;
    return this.here('SUBGROUP', value.dtype, 1, [value], { op });
  }

  /** A node at the point of the call, which is never shared. */
  here<O extends ProgramNode['op']>(
    op: O,
    dtype: DType | 'void',
    lanes: number,
    src: readonly KNode[],
    arg: KArg<O>,
  ): ProgramNode {
    const placed = src.map((s) => this.place(s));
    const n = uniqueNode(op, dtype, lanes, placed, arg) as ProgramNode;
    this.#block.items.push(n);
    this.#setPlaced(n, this.#block);
    return n;
  }

  // --- memory

  /** Group-private memory for `length` elements. */
  shared(name: string, dtype: DType, length: number): KNodeOf<'SHARED'> {
    return this.#declare(uniqueNode('SHARED', dtype, 1, [], { name, length }));
  }

  /** `length` mutable registers. */
  reg(name: string, dtype: DType, lanes = 1, length = 1): KNodeOf<'REG'> {
    return this.#declare(uniqueNode('REG', dtype, lanes, [], { name, length }));
  }

  #declare<N extends ProgramNode>(n: N): N {
    this.#insert(this.#root, n);
    this.#setPlaced(n, this.#root);
    return n;
  }

  /** Reads memory. From mutable memory the read happens here and now; from a read-only PARAM it is a pure expression. */
  load(mem: KNode, index: KNode | number, lanes?: number, gate?: KNode, alt?: KNode, arg: KArgs['LOAD'] = null): KNode {
    const at = typeof index === 'number' ? this.e.i32(index) : index;
    const n = this.e.load(mem, at, gate, alt, lanes ?? mem.lanes, arg);
    if (n.op !== 'LOAD' || !isMutable(mem)) return n;
    return this.here('LOAD', n.dtype, n.lanes, n.src, null);
  }

  store(mem: KNode, index: KNode | number, value: KNode, gate?: KNode): void {
    this.#write('STORE', null, mem, index, value, gate);
  }

  /** The statement that was written last. */
  latest(): KNode | null {
    const last = this.#block.items.at(-1);
    return last === undefined || 'items' in last ? null : last;
  }

  atomic(op: KArgs['ATOMIC']['op'], mem: KNode, index: KNode | number, value: KNode, gate?: KNode): void {
    this.#write('ATOMIC', { op }, mem, index, value, gate);
  }

  #write<O extends 'STORE' | 'ATOMIC'>(
    op: O,
    arg: KArgs[O],
    mem: KNode,
    index: KNode | number,
    value: KNode,
    gate?: KNode,
  ): void {
    checkStored('store', mem, value);
    if (gate?.op === 'CONST' && gate.arg.value === 0) return;
    const at = typeof index === 'number' ? this.e.i32(index) : index;
    if (mem.op === 'SHARED') this.#stored.set(mem, ++this.#stores);
    const src = [this.place(mem), this.place(at), this.place(value)];
    if (gate !== undefined && gate.op !== 'CONST') src.push(this.place(gate));
    const n = uniqueNode('STORE', 'void', 1, src, null);
    this.#block.items.push(op === 'STORE' ? n : uniqueNode('ATOMIC', 'void', 1, n.src, arg!));
  }

  // --- placement of pure expressions

  /** Places an expression now and returns the node of the body that holds it; for values that must be computed before what follows. */
  place(x: KNode): ProgramNode {
    const known = this.#visible(x);
    if (known !== null) return known.node;
    const stack = [x];
    while (stack.length > 0) {
      const n = stack[stack.length - 1]!;
      // All that is pushed was not; the same may have been pushed twice.
      if (stack.length === 1 || this.#visible(n) === null) {
        const terms = sumTerms(n);
        const sources = terms ?? n.src;
        const before = stack.length;
        for (let i = sources.length - 1; i >= 0; i--) {
          const s = sources[i]!;
          if (this.#visible(s) === null) stack.push(s);
        }
        if (stack.length > before) continue;
        (n as Known).placed = terms === null ? this.#placeOne(n) : this.#placeSum(n);
      }
      stack.pop();
    }
    return ((x as Known).placed as Placed).node;
  }

  /** Places a sum term by term, outer blocks first; all its terms are placed already. */
  #placeSum(n: KNode): Placed {
    const sum = depthOrdered(this.e, n, (t) => this.#visible(t)!.block.depth);
    const parts: KNode[] = [sum];
    for (let i = 0; i < parts.length; i++) {
      for (const s of parts[i]!.src) if (this.#visible(s) === null) parts.push(s);
    }
    for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
      if (this.#visible(part) === null) (part as Known).placed = this.#placeOne(part);
    }
    return (sum as Known).placed as Placed;
  }

  /** The latest placement of an expression by this builder. */
  #placementOf(n: KNode): Placed | null {
    const p = (n as Known).placed as Placed | null;
    return p !== null && p.by === this.#root ? p : null;
  }

  #setPlaced(node: ProgramNode, block: Block): void {
    const placed: Placed = { by: this.#root, block, node, reads: undefined, stores: 0 };
    (node as Known).placed = placed;
  }

  #visible(n: KNode): Placed | null {
    const p = (n as Known).placed as Placed | null;
    if (p === null || p.by !== this.#root || !p.block.open) return null;
    if (p.reads !== undefined) for (const mem of p.reads) if (this.#stored.get(mem)! > p.stores) return null;
    return p;
  }

  /** Places an expression whose sources are placed. */
  #placeOne(n: KNode): Placed {
    let block = this.#root;
    let same = true;
    let reads: Set<KNode> | undefined;
    const src = new Array<KNode>(n.src.length);
    for (let i = 0; i < src.length; i++) {
      const s = n.src[i]!;
      const p = (s as Known).placed as Placed;
      if (p.reads !== undefined) reads = new Set([...(reads ?? []), ...p.reads]);
      if (p.block.depth > block.depth) block = p.block;
      if (p.node !== s) same = false;
      src[i] = p.node;
    }
    switch (n.op) {
      case 'PARAM':
        this.#params.set(n.arg.slot, n);
        break;
      case 'SCALAR':
        this.#scalars.set(n.arg.slot, n.dtype);
        break;
      case 'LOAD':
        if (isMutable(n.src[0])) {
          block = this.#block;
          if (n.src[0]?.op === 'SHARED') (reads ??= new Set()).add(n.src[0]);
        } else block = this.#guarded(block);
        break;
      case 'IDIV':
      case 'IREM':
        if (n.src[1]?.op !== 'CONST') block = this.#guarded(block);
        break;
      case 'RANGE':
      case 'REDUCE':
      case 'STAGE':
        throw fault('kernel.place', told && `${n.op} belongs to loop nests: lower the kernel with linearize first`);
      case 'LOOP':
      case 'REG':
      case 'SHARED':
        throw fault('kernel.place', told && `${n.op} of another program or of a loop that has ended`);
    }
    const again = this.#placementOf(n) !== null;
    const node = same && !again ? n : withSources(n, src);
    if (node !== n) {
      const [to, from] = [node as Known, n as Known];
      to.lo = from.lo;
      to.hi = from.hi;
    }
    this.#insert(block, node);
    const placed: Placed = { by: this.#root, block, node, reads, stores: this.#stores };
    if (node !== n) (node as Known).placed = placed;
    return placed;
  }

  /**
   * The outermost block from `block` inwards that is entered only if the current one is. A gated load need not wait for loops, but
   * its gate may have been simplified with what an IF around it promises.
   */
  #guarded(block: Block): Block {
    let limit = this.#block;
    while (limit.depth > block.depth && !limit.maybe) limit = limit.parent!;
    return limit.depth > block.depth ? limit : block;
  }

  /** Appends to an open block, before its child that is being written. */
  #insert(block: Block, n: ProgramNode): void {
    if (block === this.#block) block.items.push(n);
    else block.items.splice(block.items.length - 1, 0, n);
  }

  // --- result

  build(options: BuildOptions): Program {
    if (this.#block !== this.#root) throw fault('kernel.build', told && 'a loop or IF is still open');
    const body: ProgramNode[] = [];
    writeBlock(this.#root, newMark(), body);
    body.reverse();
    const bySlot = <T>(m: Map<number, T>): T[] => [...m.entries()].sort((a, b) => a[0] - b[0]).map((x) => x[1]);
    return programOf({
      grid: [1, 1, 1],
      group: [1, 1, 1],
      cost: { flops: 0, bytes: 0 },
      params: bySlot(this.#params),
      scalars: bySlot(this.#scalars),
      ...options,
      body,
    });
  }
}
