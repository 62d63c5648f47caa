/**
 * The open loops at one point of linearization and the values lowered under them.
 *
 * A range is open either as a loop (one scalar value) or as a *tile*: `count` copies of `lanes` consecutive values
 * computed side by side in registers. Statements run over all combinations of copies with `forEach`; outside of it
 * tiles have no value. At most one open tile has lanes > 1.
 */
import { told } from '#shown-as';
import type { ProgramBuilder } from '../../ir/builder/builder.ts';
import type { Exprs } from '../../ir/expr.ts';
import { type FreeRanges, type Range, type RangeList, sizedStrideOf } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import type { Known, Linear } from '../../ir/node.ts';
import { remake } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { type DType, isFloat } from '../../shape/dtype.ts';

/** A range opened as `count` copies of `lanes` values, starting at `base`, consecutive copies `step` apart. */
export interface Tile {
  readonly range: Range;
  readonly base: KNode;
  readonly count: number;
  readonly lanes: number;
  readonly step: KNode;
  /** The values of the copies, lane by lane, as far as they were asked for. */
  readonly values: KNode[];
  /** Elements before this one were counted already; null: none. */
  readonly from: KNode | null;
  /** The copy being lowered. */
  copy: number;
  /** The only copy to run, or null for all. */
  only: number | null;
}

/** The copies that a range is opened as. */
export type Copies = Pick<Tile, 'base' | 'count' | 'lanes'> & Partial<Pick<Tile, 'step' | 'from'>>;

export type Memo = Map<KNode, KNode>;

/** Number of combinations of copies. */
export function copiesOf(tiles: readonly Tile[]): number {
  return tiles.reduce((n, t) => n * t.count, 1);
}

/** The widest lanes among tiles. */
export function lanesOf(tiles: readonly Tile[]): number {
  return tiles.reduce((n, t) => Math.max(n, t.lanes), 1);
}

/** Row-major number of the current copies. */
export function copyIndex(tiles: readonly Tile[]): number {
  return tiles.reduce((n, t) => n * t.count + t.copy, 0);
}

/** Throws for a nest that breaks a rule, which pages do not name. */
export function refuse({ op, arg }: KNode, what: string | false): never {
  throw new Error(`[linearize] ${op} ${JSON.stringify(arg)} ${what || 'breaks a rule'}`);
}

export class Scope {
  readonly e: Exprs;
  readonly free: FreeRanges;
  readonly tiles: Tile[] = [];
  /** The tile whose lanes are being lowered as vectors, inside forEach. */
  vector: Tile | null = null;
  /** The lane to lower as a scalar, or -1 to lower whole vectors. */
  lane = -1;
  readonly #values = new Map<Range, KNode>();
  readonly #levels = new Map<Range, number>();
  /** Values by the innermost loop they depend on; level 0 depends on none. */
  readonly #memos: Memo[] = [new Map()];
  /** Values that depend on a tile: first the memo of whole vectors, then one per lane. */
  #tileMemos: (Memo | undefined)[] = [];
  /** The last list of ranges looked up and its memo, valid while the same ranges are open at the same lane. */
  #lastRanges: RangeList | null = null;
  #lastMemo: Memo = new Map();

  constructor(e: Exprs, free: FreeRanges) {
    this.e = e;
    this.free = free;
  }

  isOpen(r: Range): boolean {
    return this.#levels.has(r);
  }

  allOpen(ranges: RangeList): boolean {
    for (const r of ranges) if (!this.#levels.has(r)) return false;
    return true;
  }

  /** Runs the body with the range open as a loop whose variable is `value`. */
  withLoop(r: Range, value: KNode, body: () => void): void {
    this.#enter(r, this.#memos.length);
    this.#memos.push(new Map());
    this.#values.set(r, value);
    body();
    this.#values.delete(r);
    this.#memos.pop();
    this.#levels.delete(r);
    this.#lastRanges = null;
  }

  /** Runs the body with the range open as a tile, whose copies are consecutive unless a step is given. */
  withTile(r: Range, { base, count, lanes, step = this.e.i32(lanes), from = null }: Copies, body: () => void): void {
    this.#enter(r, -1);
    this.tiles.push({ range: r, base, count, lanes, step, values: [], from, copy: 0, only: null });
    body();
    this.tiles.pop();
    this.#levels.delete(r);
    this.#lastRanges = null;
  }

  /** Runs the body with an open tile at one copy, whose number is known only at run time. */
  atCopy(tile: Tile, copy: KNode, body: () => void): void {
    const { range, base, lanes, step, from } = tile;
    const at = this.tiles.indexOf(tile);
    this.tiles.splice(at, 1);
    this.#levels.delete(range);
    const first = this.e.add(base, this.e.mul(copy, step));
    if (lanes === 1) this.withLoop(range, first, body);
    else this.withTile(range, { base: first, count: 1, lanes, step, from }, body);
    this.tiles.splice(at, 0, tile);
    this.#levels.set(range, -1);
    this.#lastRanges = null;
  }

  #enter(r: Range, level: number): void {
    if (this.#levels.has(r)) refuse(r, told && 'is opened inside itself: nested reductions need ranges of their own');
    this.#levels.set(r, level);
    this.#lastRanges = null;
  }

  /** Runs `fn` for every combination of copies that are to run; inside it those tiles have values. */
  forEach(tiles: readonly Tile[], fn: () => void): void {
    const total = copiesOf(tiles);
    const vector = tiles.find((t) => t.lanes > 1) ?? null;
    for (let k = 0; k < total; k++) {
      let rest = k;
      for (let i = tiles.length - 1; i >= 0; i--) {
        const t = tiles[i]!;
        t.copy = rest % t.count;
        rest = (rest - t.copy) / t.count;
        this.#values.set(t.range, this.#start(t, 0));
      }
      if (tiles.some((t) => t.only !== null && t.only !== t.copy)) continue;
      this.vector = vector;
      this.#tileMemos = [];
      this.#lastRanges = null;
      fn();
    }
    this.vector = null;
    for (const t of tiles) this.#values.delete(t.range);
  }

  /** Runs `fn` for one copy after another of the open tile of kind 'interleaved'. */
  eachInterleaved(fn: () => void): void {
    const tile = this.tiles.find((t) => t.range.arg.kind === 'interleaved');
    if (tile === undefined || tile.only !== null) {
      fn();
      return;
    }
    for (let k = 0; k < tile.count; k++) {
      tile.only = k;
      fn();
    }
    tile.only = null;
  }

  /** The value of a lane of the current copy. */
  #start(tile: Tile, lane: number): KNode {
    const { copy } = tile;
    return (tile.values[copy * tile.lanes + lane] ??=
      lane > 0 ? this.e.add(this.#start(tile, 0), lane) : this.e.add(tile.base, this.e.mul(copy, tile.step)));
  }

  /** Runs `fn` with the vector tile fixed at one of its lanes. */
  atLane<T>(lane: number, fn: () => T): T {
    const tile = this.vector!;
    const before = this.lane;
    const value = this.#values.get(tile.range)!;
    this.lane = lane;
    this.#lastRanges = null;
    this.#values.set(tile.range, this.#start(tile, lane));
    const result = fn();
    this.#values.set(tile.range, value);
    this.lane = before;
    this.#lastRanges = null;
    return result;
  }

  /** Value of an open range: scalar, or its first lane for the vector tile. */
  valueOf(r: Range): KNode {
    const v = this.#values.get(r);
    if (v === undefined) refuse(r, told && 'is used outside its loop');
    return v;
  }

  /** True if a node that depends on these ranges is lowered to a vector. */
  isVector(ranges: RangeList): boolean {
    return this.vector !== null && this.lane < 0 && ranges.includes(this.vector.range);
  }

  /** The memo for the value of a node. */
  memoOf(n: KNode): Memo {
    const ranges = ((n as Known).free as RangeList | null) ?? this.free.of(n);
    if (ranges.length === 0) return this.#memos[0]!;
    return ranges === this.#lastRanges ? this.#lastMemo : this.#memoFor(ranges);
  }

  /** The memo for values that depend on these ranges. */
  #memoFor(ranges: RangeList): Memo {
    let level = 0;
    for (let i = 0; i < ranges.length && level >= 0; i++) {
      const l = this.#levels.get(ranges[i]!) ?? 0;
      if (l < 0 || l > level) level = l;
    }
    const memo = level < 0 ? (this.#tileMemos[this.lane + 1] ??= new Map()) : this.#memos[level]!;
    this.#lastRanges = ranges;
    this.#lastMemo = memo;
    return memo;
  }
}

// Expressions under open loops: one value for each copy and lane, written once.

/**
 * A finished REDUCE (one value per kept copy, possibly also in `memory`, or a cell of memory per column). Or a STAGE (memory with
 * one section per kept copy).
 */
export type Result =
  | { readonly kind: 'columns'; readonly column: Range; readonly memory: KNode }
  | {
      readonly kind: 'values';
      readonly tiles: readonly Tile[];
      readonly values: readonly KNode[];
      readonly memory?: KNode;
    }
  | {
      readonly kind: 'memory';
      readonly tiles: readonly Tile[];
      readonly memory: KNode;
      readonly length: number;
      readonly lanes: number;
    };

/** How an index moves over the lanes of the vector tile. */
export type Address =
  | { readonly kind: 'same' | 'unit'; readonly base: KNode }
  | { readonly kind: 'steps'; readonly base: KNode; readonly step: KNode }
  | { readonly kind: 'lanes'; readonly each: readonly KNode[] };

/** A vector of elements at such an address as one LOAD, or null. `at`: the place of a lane. */
export type SteppedLoad = (
  e: Exprs,
  memory: KNode,
  address: Address,
  lanes: number,
  at: (lane: number) => KNode,
) => KNode | null;

/** A vector whose lanes each read what they keep, or null. */
export type PickLanes = (root: KNodeOf<'WHERE'>, values: Values) => KNode | null;

/** What targets write otherwise than lane by lane. */
interface VectorForms {
  readonly pickLanes?: PickLanes;
  readonly stepped?: SteppedLoad;
}

export class Values {
  readonly b: ProgramBuilder;
  readonly scope: Scope;
  readonly results: Map<KNode, Result> = new Map();
  /** Nodes under the vector tile at one place: whether they are made of numbers that differ from lane to lane. */
  readonly #differing = new Map<KNode, boolean>();
  #differAt: KNode | null = null;
  readonly #forms: VectorForms;

  constructor(b: ProgramBuilder, scope: Scope, forms: VectorForms) {
    this.#forms = forms;
    this.b = b;
    this.scope = scope;
  }

  /** The value under the open loops: a scalar, or a vector if it depends on the vector tile. */
  lower(root: KNode): KNode {
    const { scope } = this;
    const known = this.#find(root);
    if (known !== undefined) return known;
    const stack = [root];
    while (stack.length > 0) {
      const n = stack[stack.length - 1]!;
      const memo = scope.memoOf(n);
      if (!memo.has(n)) {
        const picked = n.op === 'WHERE' && this.#forms.pickLanes?.(n, this);
        if (picked) {
          memo.set(n, picked);
          stack.pop();
          continue;
        }
        // For a LOAD only its alternative; address and gate are lowered with the load.
        const first = n.op === 'LOAD' ? 3 : 0;
        const end = n.op === 'REDUCE' || n.op === 'RANGE' ? 0 : n.src.length;
        const before = stack.length;
        const values = new Array<KNode>(n.src.length);
        for (let i = first; i < end; i++) {
          const s = n.src[i]!;
          const value = scope.memoOf(s).get(s);
          if (value === undefined) stack.push(s);
          else values[i] = value;
        }
        if (stack.length > before) continue;
        memo.set(n, this.#lowerOne(n, values));
      }
      stack.pop();
    }
    return this.#find(root)!;
  }

  #find(n: KNode): KNode | undefined {
    return this.scope.memoOf(n).get(n);
  }

  /** `values`: its lowered sources, if it needs them. */
  #lowerOne(n: KNode, values: readonly KNode[]): KNode {
    const { e } = this.scope;
    switch (n.op) {
      case 'RANGE': {
        const value = this.scope.valueOf(n);
        return this.scope.isVector([n]) ? e.add(value, e.iota(this.scope.vector!.lanes)) : value;
      }
      case 'REDUCE': {
        const result = this.results.get(n);
        if (result?.kind === 'columns') {
          const lanes = this.scope.isVector([result.column]) ? this.scope.vector!.lanes : 1;
          return e.cast(this.b.load(result.memory, this.scope.valueOf(result.column), lanes), n.dtype);
        }
        if (result?.kind !== 'values') refuse(n, told && 'is used before it is computed');
        const value = result.values[copyIndex(result.tiles)]!;
        return this.scope.lane >= 0 && value.lanes > 1 ? e.lane(value, this.scope.lane) : value;
      }
      case 'LOAD':
        return this.#load(n);
      default:
        return remake(e, n, values);
    }
  }

  #load(n: KNodeOf<'LOAD'>): KNode {
    const { scope } = this;
    const { e } = scope;
    const [mem, index, gate, altA] = n.src;
    const alt = altA === undefined ? undefined : this.#find(altA);
    const staged = mem.op === 'STAGE' ? this.#memoryOf(mem) : null;
    const memory = staged === null ? mem : staged.memory;
    const width = staged === null ? 1 : staged.lanes; // lanes stored side by side for every element
    const section = staged === null ? 0 : copyIndex(staged.tiles) * staged.length;
    // Most memory has neither: there an index is what it is.
    const place = (i: KNode, lane: number): KNode =>
      width > 1 ? e.add(e.mul(i, width), section * width + lane) : section > 0 ? e.add(i, section) : i;

    const vector = scope.isVector(scope.free.of(index)) || (gate !== undefined && scope.isVector(scope.free.of(gate)));
    if (!vector && (width === 1 || scope.lane >= 0)) {
      const g = gate === undefined ? undefined : this.lower(gate);
      return this.#gated(memory, place(this.lower(index), scope.lane), g, alt);
    }
    const address = this.address(index);
    const gates = gate === undefined ? undefined : this.#gates(gate);
    const uniform = gates === undefined || gates.every((g) => g === gates[0]);
    const lanes = scope.vector!.lanes;
    if (uniform && address.kind === (width === 1 ? 'unit' : 'same')) {
      return e.load(memory, place(address.base, 0), gates?.[0], alt, lanes);
    }
    if (uniform && address.kind === 'same') return this.#gated(memory, place(address.base, 0), gates?.[0], alt);
    const at = (k: number): KNode => place(laneOf(e, address, k), k);
    const each = (_: unknown, k: number): KNode =>
      e.load(memory, at(k), gates?.[k], alt && (alt.lanes > 1 ? e.lane(alt, k) : alt));
    return (
      (gates === undefined && this.#forms.stepped?.(e, memory, address, lanes, at)) ||
      e.vec(Array.from({ length: lanes }, each))
    );
  }

  /** A scalar load, also if its alternative is a vector. */
  #gated(memory: KNode, index: KNode, gate: KNode | undefined, alt: KNode | undefined): KNode {
    const { e } = this.scope;
    if (gate === undefined || alt === undefined || alt.lanes === 1) return e.load(memory, index, gate, alt);
    return e.where(gate, e.load(memory, index, gate), alt);
  }

  #memoryOf(stage: KNode): Extract<Result, { kind: 'memory' }> {
    const result = this.results.get(stage);
    if (result?.kind !== 'memory') refuse(stage, told && 'is used before it is computed');
    return result;
  }

  #gates(gate: KNode): KNode[] {
    const { scope } = this;
    if (scope.isVector(scope.free.of(gate))) return this.#eachLane(gate);
    return new Array<KNode>(scope.vector!.lanes).fill(this.lower(gate));
  }

  /** The value of every lane. */
  #eachLane(index: KNode): KNode[] {
    const { scope } = this;
    return Array.from({ length: scope.vector!.lanes }, (_, k) => scope.atLane(k, () => this.lower(index)));
  }

  /** An index some of whose terms are computed from what was read: these as vectors, whose lanes are taken then; what places alone give lane by lane. */
  #computedLanes({ terms, coefs, offset }: Linear, read: readonly KNode[]): KNode[] {
    const { e } = this.scope;
    const vector = read.map((t) => e.mul(this.lower(t), coefs[terms.indexOf(t)]!)).reduce((a, b) => e.add(a, b));
    const places = terms.reduce<KNode>(
      (sum, t, i) => (read.includes(t) ? sum : e.add(sum, e.mul(t, coefs[i]!))),
      e.i32(offset),
    );
    return this.#eachLane(places).map((at, k) => e.add(at, e.lane(vector, k)));
  }

  /** True for a term with arithmetic on numbers that differ from lane to lane, at whatever depth. What was only read is an index as it is. */
  #computed(term: KNode, range: Range): boolean {
    const stack = [term];
    for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
      if (n.op === 'LOAD') stack.push(...linearOf(n.src[1]).terms);
      else if (this.#differs(n, range)) return true;
    }
    return false;
  }

  /** True if a node is made of numbers that lanes read at different places, or of fractions of places that only the running program knows. */
  #differs(root: KNode, range: Range): boolean {
    const { free } = this.scope;
    const at = this.scope.valueOf(range);
    if (this.#differAt !== at) {
      this.#differAt = at;
      this.#differing.clear();
    }
    const known = this.#differing;
    const stack = [root];
    while (stack.length > 0) {
      const n = stack[stack.length - 1]!;
      const open = (s: KNode): boolean => !known.has(s) && free.has(s, range);
      if (!open(n)) stack.pop();
      else if (n.op === 'REDUCE' || n.op === 'LOAD')
        known.set(n, n.op === 'REDUCE' || this.address(n.src[1]).kind !== 'same');
      else {
        const next = n.src.find(open);
        if (next !== undefined) stack.push(next);
        else known.set(n, (isFloat(n.dtype as DType) && at.op !== 'CONST') || n.src.some((s) => known.get(s) === true));
      }
    }
    return known.get(root) === true;
  }

  /** How an index moves over the lanes. */
  address(index: KNode): Address {
    const { scope } = this;
    const { e } = scope;
    const { range } = scope.vector!;
    if (!scope.free.has(index, range)) return { kind: 'same', base: this.lower(index) };
    const stride = sizedStrideOf(scope.free, index, range);
    if (stride !== null) {
      const base = scope.atLane(0, () => this.lower(index));
      const { number, sizes } = stride;
      if (number === 1 && sizes.length === 0) return { kind: 'unit', base };
      // Lane by lane each place would be a product.
      const step = sizes.reduce((n, size) => e.mul(n, this.lower(size)), e.i32(number));
      return { kind: 'steps', base, step };
    }
    const form = linearOf(index);
    const read = form.terms.filter((t) => this.#computed(t, range));
    const each = read.length > 0 ? this.#computedLanes(form, read) : this.#eachLane(index);
    const base = each[0]!;
    if (each.every((x) => x === base)) return { kind: 'same', base };
    if (each.every((x, k) => x === e.add(base, k))) return { kind: 'unit', base };
    return { kind: 'lanes', each };
  }

  /** Statements of a store under the current copies: values first, so that the returned writes can come after other reads. */
  prepareStore(mem: KNode, index: KNode, value: KNode, gate: KNode | undefined): () => void {
    const { b, scope } = this;
    const { e } = scope;
    const v = b.place(this.lower(value));
    const { vector } = scope;
    const depends = (x: KNode | undefined): boolean => x !== undefined && scope.isVector(scope.free.of(x));
    if (vector === null || !(depends(index) || depends(gate) || v.lanes > 1)) {
      const at = b.place(this.lower(index));
      const g = gate === undefined ? undefined : this.lower(gate);
      return () => b.store(mem, at, v, g);
    }
    const address = this.address(index);
    const gates = gate === undefined ? undefined : this.#gates(gate);
    if (address.kind === 'unit' && (gates === undefined || gates.every((g) => g === gates[0]))) {
      return () => b.store(mem, address.base, e.splat(v, vector.lanes), gates?.[0]);
    }
    return () => {
      for (let k = 0; k < vector.lanes; k++)
        b.store(mem, laneOf(e, address, k), v.lanes > 1 ? e.lane(v, k) : v, gates?.[k]);
    };
  }
}

function laneOf(e: Scope['e'], address: Address, k: number): KNode {
  if (address.kind === 'lanes') return address.each[k]!;
  return address.kind === 'same'
    ? address.base
    : e.add(address.base, address.kind === 'steps' ? e.mul(address.step, k) : k);
}
