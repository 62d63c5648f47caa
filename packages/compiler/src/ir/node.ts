/**
 * The concrete node class behind KNode and the table that makes equal pure nodes identical.
 *
 * Besides what the IR shows, a node remembers its number, its hash and, for integers and bool, bounds of its value.
 * Nothing outside this folder needs to know this class: use `idOf`, `lowOf` and `highOf`. Walks may use `Known` for their marks.
 */
import { showAs } from '#shown-as';
import type { DType } from '../shape/dtype.ts';
import type { KArg, KArgs, KNode, KNodeOf, KOp } from './ir.ts';
import { isArg, type ValueOp } from './operations.ts';

/** A linear form `sum(coefs[i] * terms[i]) + offset` of int32 expressions, in wrapping arithmetic. Terms are sorted by node number. */
export interface Linear {
  readonly terms: readonly KNode[];
  readonly coefs: readonly number[];
  readonly offset: number;
}

/** What distinguishes arguments of interned nodes. */
export type ArgKey = number | bigint | string;

let counter = 0;

/** A number never given before, for RANGE ids. */
export function freshId(): number {
  return ++counter;
}

let marks = 0;

/** A number that no walk has had before: a node with this mark has been met in this walk. Walks with marks must not be nested. */
export function newMark(): number {
  return ++marks;
}

export class NodeObject {
  readonly op: KOp;
  readonly dtype: DType | 'void';
  readonly lanes: number;
  readonly src: readonly KNode[];
  readonly arg: KArg<KOp>;
  readonly id: number;
  readonly key: ArgKey;
  readonly hash: number;
  /** Bounds of the value where it is a small integer or bool; may be tightened after construction. */
  lo: number = Number.NEGATIVE_INFINITY;
  hi: number = Number.POSITIVE_INFINITY;
  linear: Linear | null = null;
  /** The ranges it depends on (free-ranges.ts). */
  free: readonly KNode[] | null = null;
  /** What the last walk that met it left here: a number that no other walk gives (newMark). */
  mark = 0;
  /** Where a builder has placed it (builder/builder.ts). */
  placed: object | null = null;

  constructor(
    op: KOp,
    dtype: DType | 'void',
    lanes: number,
    src: readonly KNode[],
    arg: KArg<KOp>,
    key: ArgKey,
    hash: number,
  ) {
    this.op = op;
    this.dtype = dtype;
    // A small integer to the JavaScript engine too, however it was reckoned: one node with another would make all compiled code forget nodes.
    this.lanes = lanes | 0;
    this.src = src;
    this.arg = arg;
    this.id = ++counter;
    this.key = key;
    this.hash = hash;
  }
}

/** A PARAM that no expression uses, of a program whose body was left out. */
export function paramOf(dtype: DType, arg: KArgs['PARAM']): KNodeOf<'PARAM'> {
  return new NodeObject('PARAM', dtype, 1, [], arg, 0, 0) as unknown as KNodeOf<'PARAM'>;
}

// A node leads to all it computes from, by every way: written out as a tree that is more than memory holds.
showAs(NodeObject.prototype, ({ op, dtype, lanes, id }) => `${op} ${dtype}${lanes > 1 ? `x${lanes}` : ''} #${id}`);

/** What a node hides. `n as Known` is how this folder gets at it: every node is made by its factories. */
interface Hidden {
  readonly id: number;
  readonly hash: number;
  lo: number;
  hi: number;
  linear: Linear | null;
  free: readonly KNode[] | null;
  mark: number;
  placed: object | null;
}

export type Known = KNode & Hidden;

/**
 * A number unique to the node in this process; later nodes have larger numbers than their sources.
 *
 * @example
 * const e = new Exprs();
 * const x = e.scalar(0, 'int32');
 * idOf(e.mul(x, 2)) > idOf(x); // true
 */
export function idOf(n: KNode): number {
  return (n as Known).id;
}

/**
 * Least possible value of an integer or bool expression; -Infinity if unknown.
 *
 * @example
 * const e = new Exprs();
 * lowOf(e.add(e.range(8), 3)); // 3
 */
export function lowOf(n: KNode): number {
  return (n as Known).lo;
}

/**
 * Largest possible value of an integer or bool expression; Infinity if unknown.
 *
 * @example
 * const e = new Exprs();
 * highOf(e.add(e.range(8), 3)); // 10
 */
export function highOf(n: KNode): number {
  return (n as Known).hi;
}

/** Tells the factory's rules that an int32 node is known to lie in [lo, hi]. */
export function assumeBounds(n: KNode, lo: number, hi: number): void {
  const obj = n as Known;
  obj.lo = Math.max(obj.lo, lo);
  obj.hi = Math.min(obj.hi, hi);
}

/** Sources of nodes that have none. */
const noSources: readonly KNode[] = [];

const bits = new DataView(new ArrayBuffer(8));

function hashKey(key: ArgKey): number {
  if (typeof key === 'number') {
    if ((key | 0) === key) return key;
    bits.setFloat64(0, key);
    return bits.getInt32(0) ^ bits.getInt32(4);
  }
  if (typeof key === 'bigint') return Number(BigInt.asIntN(32, key));
  let h = key.length;
  for (let i = 0; i < key.length; i++) h = (Math.imul(h, 31) + key.charCodeAt(i)) | 0;
  return h;
}

/** Hash-consing table: open addressing over nodes, compared field by field. */
export class InternTable {
  #slots: (NodeObject | undefined)[] = new Array(256);
  #mask = 255;
  #count = 0;
  readonly #onNew: (n: NodeObject) => void;

  constructor(onNew: (n: NodeObject) => void) {
    this.#onNew = onNew;
  }

  /** The node with these fields; made on first request. `arg` is read only when a node is made. */
  intern(
    op: KOp,
    dtype: DType | 'void',
    lanes: number,
    src: readonly KNode[],
    key: ArgKey,
    arg: KArg<KOp>,
  ): NodeObject {
    // First letters distinguish most operations and dtypes.
    const letters =
      (op.charCodeAt(0) * 31 + op.charCodeAt(op.length - 1)) * 31 + op.charCodeAt(op.length >> 1) + op.length;
    let h = Math.imul(letters, 0x9e3779b1) ^ Math.imul(lanes, 0x85ebca6b) ^ (dtype.length * 263 + dtype.charCodeAt(0));
    for (let i = 0; i < src.length; i++) h = Math.imul(h ^ (src[i] as Known).id, 0x01000193) ^ (h >>> 15);
    h = Math.imul(h ^ (typeof key === 'number' && (key | 0) === key ? key : hashKey(key)), 0xc2b2ae35);
    h ^= h >>> 13;
    const slots = this.#slots;
    let i = h & this.#mask;
    for (let n = slots[i]; n !== undefined; n = slots[(i = (i + 1) & this.#mask)]) {
      if (
        n.hash === h &&
        n.op === op &&
        n.dtype === dtype &&
        n.lanes === lanes &&
        Object.is(n.key, key) &&
        sameNodes(n.src, src)
      ) {
        return n;
      }
    }
    return this.#insert(i, new NodeObject(op, dtype, lanes, src, arg, key, h));
  }

  /** The CONST of a value. Most are known, so nothing is made for the question. They are made here alone. */
  constant(dtype: DType, lanes: number, value: number | bigint): NodeObject {
    const bits = typeof value === 'number' && (value | 0) === value ? value : hashKey(value);
    let h = Math.imul(lanes * 4099 + dtype.length * 263 + dtype.charCodeAt(0), 0x9e3779b1) ^ bits;
    h = Math.imul(h ^ (h >>> 15), 0xc2b2ae35);
    h ^= h >>> 13;
    const slots = this.#slots;
    let i = h & this.#mask;
    for (let n = slots[i]; n !== undefined; n = slots[(i = (i + 1) & this.#mask)]) {
      if (n.hash === h && n.op === 'CONST' && n.dtype === dtype && n.lanes === lanes && Object.is(n.key, value))
        return n;
    }
    return this.#insert(i, new NodeObject('CONST', dtype, lanes, noSources, { value }, value, h));
  }

  #insert(at: number, node: NodeObject): NodeObject {
    this.#slots[at] = node;
    this.#onNew(node);
    if (++this.#count * 2 > this.#mask) this.#grow();
    return node;
  }

  #grow(): void {
    const old = this.#slots;
    this.#mask = old.length * 2 - 1;
    this.#slots = new Array(old.length * 2);
    for (let at = 0; at < old.length; at++) {
      const n = old[at];
      if (n === undefined) continue;
      let i = n.hash & this.#mask;
      while (this.#slots[i] !== undefined) i = (i + 1) & this.#mask;
      this.#slots[i] = n;
    }
  }
}

/** True if both lists are of the same nodes in the same order. */
export function sameNodes(a: readonly KNode[], b: readonly KNode[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

// Ways through expressions, which share parts: each node is met once.

const everySource = (n: KNode): readonly KNode[] => n.src;

/** All nodes that roots are made of, users first. `follow` says which sources of a node to look at; all, unless given. */
export function nodesOf(
  roots: readonly KNode[],
  follow: (n: KNode) => readonly KNode[] = everySource,
): ReadonlySet<KNode> {
  const seen = new Set<KNode>();
  const stack = [...roots];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    const sources = follow(n);
    for (let i = 0; i < sources.length; i++) stack.push(sources[i]!);
  }
  return seen;
}

/**
 * Does something for a node after it has been done for its sources, the last of them first, without recursion: expressions may be deep.
 *
 * @param isDone whether nothing is left to do for a node; true for it once `visit` returns
 * @param follow the sources that must be done before a node
 */
export function sourcesFirst(
  root: KNode,
  isDone: (n: KNode) => boolean,
  follow: (n: KNode) => readonly KNode[],
  visit: (n: KNode) => void,
): void {
  const stack = [root];
  while (stack.length > 0) {
    const n = stack[stack.length - 1]!;
    if (!isDone(n)) {
      const before = stack.length;
      const sources = follow(n);
      for (let i = 0; i < sources.length; i++) {
        const s = sources[i]!;
        if (!isDone(s)) stack.push(s);
      }
      if (stack.length > before) continue;
      visit(n);
    }
    stack.pop();
  }
}

/** The operations that are not arithmetic on values (operations.ts). Programs carry this table alone. */
// biome-ignore format: grouped like the arguments in ir.ts
const others: Readonly<Record<keyof KArgs, true>> = {
  PARAM: true, SCALAR: true, SHARED: true, REG: true, CONST: true, SPECIAL: true,
  RANGE: true, REDUCE: true, STAGE: true, LOAD: true, STORE: true, ATOMIC: true,
  LOOP: true, ENDLOOP: true, IF: true, ENDIF: true, BARRIER: true, SUBGROUP: true,
  MATRIX: true, FRAGMENT: true, COPY: true, COMMIT: true, WAIT: true,
  CAST: true, BITCAST: true, VEC: true, LANE: true, IOTA: true,
};

/** True for operations that compute a value from values (conversions not counted). */
export function isArithmetic(op: KOp): op is ValueOp {
  return !(op in others);
}

/** True for a reduction to a position. */
export function isPosition(n: KNode): boolean {
  return n.op === 'REDUCE' && isArg(n.arg.op);
}
