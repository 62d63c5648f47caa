/**
 * `Exprs`: the factory of pure kernel nodes.
 *
 * Equal nodes are the same object (hash-consing per factory), and every node is simplified when it is made: integers
 * fully, floats only where the bits cannot change (simplify/). Operands of unequal lanes are allowed where one is a
 * scalar, which is then splat. Statements (STORE, LOOP ...) are written by ProgramBuilder, not here.
 */
import { type DType, isFloat } from '../shape/dtype.ts';
import type { KArg, KArgs, KNode, KNodeAmong, KNodeOf, ParamArg, KOp, RangeKind, SpecialKind } from './ir.ts';
import { type BinaryOp, type ReduceOp, type TernaryOp, type UnaryOp, isArg } from './operations.ts';
import { type ArgKey, assumeBounds, freshId, InternTable, NodeObject } from './node.ts';
import { simplifyBinary, simplifyTernary, simplifyUnary } from './simplify/simplify.ts';
import { foldBitcast, foldCast, setBounds } from './simplify/fold.ts';
import { type Literal, normalize } from '../shape/host.ts';

export type Range = KNodeOf<'RANGE'>;
export type Memory = KNode;
/** What arithmetic takes: a node, or a literal of the other operand's dtype. */
export type Operand = KNode | Literal;

function isTrue(gate: KNode): boolean {
  return gate.op === 'CONST' && gate.arg.value !== 0;
}

/** Refuses nodes that an operation cannot take. */
function refuse(op: string, wanted: string, ...nodes: readonly KNode[]): never {
  const got = nodes.map(({ dtype, lanes }) => `${dtype} x ${lanes}`).join(', ');
  throw new Error(`[kernel.${op}] needs ${wanted}: got ${got}`);
}

/** Throws unless a value has the dtype of the memory that it goes to, or stands for. */
export function checkStored(op: string, mem: KNode, value: KNode): void {
  if (value.dtype !== mem.dtype) refuse(op, `a value of the memory's dtype ${mem.dtype}`, value);
}

/**
 * Hash-consing factory for pure nodes of one kernel.
 *
 * @example
 * const e = new Exprs();
 * const x = e.scalar(0, 'int32');
 * e.add(e.mul(x, 2), 0) === e.mul(x, 2); // true
 */
export class Exprs {
  readonly #table: InternTable;

  /** @param shared a factory of the same kernel, whose nodes are this one's too */
  constructor(shared?: Exprs) {
    this.#table = shared === undefined ? new InternTable(setBounds) : shared.#table;
  }

  /** The node exactly as asked, without simplification. For the rules themselves and for builders. */
  intern<O extends KOp>(
    op: O,
    dtype: DType | 'void',
    lanes: number,
    src: readonly KNode[],
    key: ArgKey = 0,
    arg: KArg<O> | null = null,
  ): KNodeAmong<O> {
    return this.#table.intern(op, dtype, lanes, src, key, arg) as unknown as KNodeAmong<O>;
  }

  // --- leaves

  /** A literal, rounded or wrapped to the dtype. */
  constant(dtype: DType, value: Literal | boolean, lanes = 1): KNodeOf<'CONST'> {
    // Most are indices, as they stand.
    if (dtype === 'int32' && typeof value === 'number')
      return this.#table.constant(dtype, lanes, value | 0) as unknown as KNodeOf<'CONST'>;
    const v = normalize(dtype, typeof value === 'boolean' ? Number(value) : value);
    return this.#table.constant(dtype, lanes, v) as unknown as KNodeOf<'CONST'>;
  }

  i32(value: number): KNodeOf<'CONST'> {
    return this.#table.constant('int32', 1, value | 0) as unknown as KNodeOf<'CONST'>;
  }

  f32(value: number): KNodeOf<'CONST'> {
    return this.constant('float32', value);
  }

  bool(value: boolean, lanes = 1): KNodeOf<'CONST'> {
    return this.constant('bool', value, lanes);
  }

  param(slot: number, dtype: DType, access: ParamArg['access'], length: number, fewer?: 1): KNodeOf<'PARAM'> {
    const arg = { slot, access, length };
    const key = `${slot} ${access} ${length}`;
    return fewer === undefined
      ? this.intern('PARAM', dtype, 1, [], key, arg)
      : this.intern('PARAM', dtype, 1, [], `${key} fewer`, { ...arg, fewer });
  }

  /** A number given at dispatch; an integer between `low` and `high`, if these are given. */
  scalar(slot: number, dtype: DType, low?: number, high?: number): KNodeOf<'SCALAR'> {
    if (low === undefined || high === undefined) return this.intern('SCALAR', dtype, 1, [], slot, { slot });
    const n = this.intern('SCALAR', dtype, 1, [], `${slot} ${low} ${high}`, { slot, low, high });
    assumeBounds(n, low, high);
    return n;
  }

  /**
   * Index of the group or thread, or what is asked of subgroups. `extent` (how many values there are) lets index arithmetic simplify; it is no part of the node.
   * `nest` is: what is known in one nest of a program is told of nodes that other nests do not have.
   */
  special(kind: SpecialKind, axis: 0 | 1 | 2, extent = 0x8000_0000, nest = 0): KNodeOf<'SPECIAL'> {
    const n = this.intern('SPECIAL', 'int32', 1, [], `${kind}${axis} ${nest}`, { kind, axis, nest });
    assumeBounds(n, 0, extent - 1);
    return n;
  }

  /**
   * A new loop variable; never the same node twice. `limit`, an int32 expression of outer ranges and scalars, lets the range end
   * before its extent: the last chunk of a split range, or a size that is given at dispatch (`sizeLimit` in free-ranges.ts).
   */
  range(extent: number, kind: RangeKind = 'loop', limit?: KNode): Range {
    if (!Number.isInteger(extent) || extent < 0)
      throw new Error(`[kernel.range] needs an integer of at least 0: got ${extent}`);
    const id = freshId();
    return this.intern('RANGE', 'int32', 1, limit === undefined ? [] : [limit], id, { id, extent, kind });
  }

  // --- stage A

  reduce(op: ReduceOp, value: KNode, ranges: readonly Range[]): KNode {
    const arg = isArg(op);
    if (ranges.length === 0) return arg ? this.i32(0) : value;
    return this.intern('REDUCE', arg ? 'int32' : value.dtype, 1, [value, ...ranges], op, { op });
  }

  stage(space: 'shared' | 'reg', value: KNode, ranges: readonly Range[]): KNodeOf<'STAGE'> {
    return this.intern('STAGE', value.dtype, 1, [value, ...ranges], space, { space });
  }

  // --- memory

  /** A false gate gives `alt` (zero unless told) without touching memory. With a step there is no gate. */
  load(mem: KNode, index: KNode, gate?: KNode, alt?: KNode, lanes = 1, arg: KArgs['LOAD'] = null): KNode {
    const dtype = mem.dtype as DType;
    if (index.dtype !== 'int32' || index.lanes !== 1) refuse('load', 'an index of int32 x 1', index);
    if (gate === undefined || isTrue(gate)) return this.intern('LOAD', dtype, lanes, [mem, index], arg?.step, arg);
    if (gate.dtype !== 'bool' || gate.lanes !== 1) refuse('load', 'a gate of bool x 1', gate);
    const other = this.splat(alt ?? this.constant(dtype, 0), lanes);
    checkStored('load', mem, other);
    if (gate.op === 'CONST') return other;
    return this.intern('LOAD', dtype, lanes, [mem, index, gate, other]);
  }

  /** The store of a loop nest (LoopStore). Programs get their stores from ProgramBuilder. */
  store(mem: KNode, index: KNode, value: KNode, gate?: KNode): KNodeOf<'STORE'> {
    checkStored('store', mem, value);
    const src = gate === undefined || isTrue(gate) ? [mem, index, value] : [mem, index, value, gate];
    return uniqueNode('STORE', 'void', 1, src, null);
  }

  // --- arithmetic

  unary(op: UnaryOp, x: KNode, keep = false): KNode {
    if (keep) return this.intern(op, x.dtype, x.lanes, [x]);
    return simplifyUnary(this, op, x) ?? this.intern(op, op === 'ISNAN' ? 'bool' : x.dtype, x.lanes, [x]);
  }

  binary(op: BinaryOp, left: Operand, right: Operand): KNode {
    const x = typeof left === 'object' ? left : this.#literal(left, right as KNode);
    const y = typeof right === 'object' ? right : this.#literal(right, x);
    if (x.dtype !== y.dtype || (x.lanes !== y.lanes && x.lanes !== 1 && y.lanes !== 1))
      refuse(op, 'operands of one dtype (cast one of them) and equal lanes', x, y);
    if (x.lanes !== y.lanes) {
      return x.lanes === 1
        ? this.#equalLanes(op, this.splat(x, y.lanes), y)
        : this.#equalLanes(op, x, this.splat(y, x.lanes));
    }
    return this.#equalLanes(op, x, y);
  }

  #equalLanes(op: BinaryOp, a: KNode, b: KNode): KNode {
    const simpler = simplifyBinary(this, op, a, b);
    if (simpler !== null) return simpler;
    return this.intern(op, op === 'LT' || op === 'LE' || op === 'EQ' ? 'bool' : a.dtype, a.lanes, [a, b]);
  }

  /** Of two literals the condition or the first factor says the dtype: a choice between two is one of bools. */
  ternary(op: TernaryOp, x: KNode, second: Operand, third: Operand): KNode {
    const y = typeof second === 'object' ? second : this.#literal(second, typeof third === 'object' ? third : x);
    const z = typeof third === 'object' ? third : this.#literal(third, y);
    if (y.dtype !== z.dtype || x.dtype !== (op === 'WHERE' ? 'bool' : y.dtype)) {
      refuse(op, op === 'WHERE' ? 'a bool and two values of one dtype' : 'operands of one dtype', x, y, z);
    }
    const lanes = Math.max(x.lanes, y.lanes, z.lanes);
    const a = this.splat(x, lanes);
    const b = this.splat(y, lanes);
    const c = this.splat(z, lanes);
    return simplifyTernary(this, op, a, b, c) ?? this.intern(op, b.dtype, lanes, [a, b, c]);
  }

  #literal(x: Literal, { dtype, lanes }: KNode): KNode {
    return this.constant(dtype as DType, x, lanes);
  }

  cast(x: KNode, dtype: DType): KNode {
    if (x.dtype === dtype) return x;
    if (x.op === 'CONST') return this.constant(dtype, foldCast(x.dtype, dtype, x.arg.value), x.lanes);
    if (dtype === 'bool') {
      if (x.op === 'CAST' && x.src[0]?.dtype === 'bool') return x.src[0];
      if (!isFloat(x.dtype as DType)) return this.ne(x, 0);
    }
    return this.intern('CAST', dtype, x.lanes, [x]);
  }

  bitcast(x: KNode, dtype: DType): KNode {
    if (x.dtype === dtype) return x;
    if (x.op === 'CONST') {
      const v = foldBitcast(x.dtype, dtype, x.arg.value);
      if (v !== undefined) return this.constant(dtype, v, x.lanes);
    }
    if (x.op === 'BITCAST') return this.bitcast(x.src[0], dtype);
    return this.intern('BITCAST', dtype, x.lanes, [x]);
  }

  // --- vectors

  /** A vector of scalars of one dtype. */
  vec(xs: readonly KNode[]): KNode {
    const first = xs[0]!;
    if (xs.length === 1) return first;
    if (xs.every((x) => x === first)) return this.splat(first, xs.length);
    const whole = first.op === 'LANE' ? first.src[0] : null;
    if (whole !== null && whole.lanes === xs.length && xs.every((x, i) => x === this.lane(whole, i))) return whole;
    return this.intern('VEC', first.dtype, xs.length, xs);
  }

  splat(x: KNode, lanes: number): KNode {
    if (x.lanes === lanes) return x;
    if (x.lanes !== 1) refuse('splat', `1 or ${lanes} lanes`, x);
    if (x.op === 'CONST') return this.constant(x.dtype, x.arg.value, lanes);
    return this.intern('VEC', x.dtype, lanes, [x]);
  }

  lane(v: KNode, i: number): KNode {
    if (i < 0 || i >= v.lanes) refuse('lane', `a vector with lane ${i}`, v);
    if (v.lanes === 1) return v;
    if (v.op === 'CONST') return this.constant(v.dtype, v.arg.value);
    if (v.op === 'VEC') return v.src[v.src.length === 1 ? 0 : i]!;
    if (v.op === 'IOTA') return this.i32(i);
    return this.intern('LANE', v.dtype, 1, [v], i, { lane: i });
  }

  /** The int32 vector 0, 1, .. lanes-1. */
  iota(lanes: number): KNode {
    return lanes === 1 ? this.i32(0) : this.intern('IOTA', 'int32', lanes, []);
  }

  // --- shorthands
  add(a: Operand, b: Operand): KNode {
    return this.binary('ADD', a, b);
  }
  sub(a: Operand, b: Operand): KNode {
    return this.binary('SUB', a, b);
  }
  mul(a: Operand, b: Operand): KNode {
    return this.binary('MUL', a, b);
  }
  div(a: Operand, b: Operand): KNode {
    const x = typeof a === 'object' ? a : (b as KNode);
    if (!isFloat(x.dtype as DType)) refuse('div', 'floats (use idiv for integers)', x);
    return this.binary('DIV', a, b);
  }
  idiv(a: Operand, b: Operand): KNode {
    return this.binary('IDIV', a, b);
  }
  irem(a: Operand, b: Operand): KNode {
    return this.binary('IREM', a, b);
  }
  max(a: Operand, b: Operand): KNode {
    return this.binary('MAX', a, b);
  }
  min(a: Operand, b: Operand): KNode {
    return this.binary('MIN', a, b);
  }
  and(a: Operand, b: Operand): KNode {
    return this.binary('AND', a, b);
  }
  or(a: Operand, b: Operand): KNode {
    return this.binary('OR', a, b);
  }
  xor(a: Operand, b: Operand): KNode {
    return this.binary('XOR', a, b);
  }
  shl(a: Operand, b: Operand): KNode {
    return this.binary('SHL', a, b);
  }
  shr(a: Operand, b: Operand): KNode {
    return this.binary('SHR', a, b);
  }
  lt(a: Operand, b: Operand): KNode {
    return this.binary('LT', a, b);
  }
  le(a: Operand, b: Operand): KNode {
    return this.binary('LE', a, b);
  }
  eq(a: Operand, b: Operand): KNode {
    return this.binary('EQ', a, b);
  }
  ne(a: Operand, b: Operand): KNode {
    return this.not(this.binary('EQ', a, b));
  }
  not(x: KNode): KNode {
    return this.unary('NOT', x);
  }
  neg(x: KNode): KNode {
    return this.unary('NEG', x);
  }
  where(cond: KNode, a: Operand, b: Operand): KNode {
    return this.ternary('WHERE', cond, a, b);
  }
}

/**
 * A node that is never shared: statements, declarations of memory, reads of mutable memory.
 *
 * @example
 * uniqueNode('BARRIER', 'void', 1, [], null) === uniqueNode('BARRIER', 'void', 1, [], null); // false
 */
export function uniqueNode<O extends KOp>(
  op: O,
  dtype: DType | 'void',
  lanes: number,
  src: readonly KNode[],
  arg: KArg<O>,
): KNodeAmong<O> {
  const n = new NodeObject(op, dtype, lanes, src, arg, 0, 0);
  setBounds(n);
  return n as unknown as KNodeAmong<O>;
}

/**
 * The same operation on other sources, never shared. `remake` simplifies as well.
 *
 * @example
 * const e = new Exprs();
 * const sum = e.add(e.scalar(0, 'int32'), e.scalar(1, 'int32'));
 * withSources(sum, [...sum.src].reverse()).op; // 'ADD'
 */
export function withSources<N extends KNode>(n: N, src: readonly KNode[]): N {
  return uniqueNode(n.op, n.dtype, n.lanes, src, n.arg) as KNode as N;
}
