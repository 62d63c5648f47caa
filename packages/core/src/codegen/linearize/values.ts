import type { ProgramBuilder } from '../../ir/builder/builder.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import type { Range } from '../../ir/free-ranges.ts';
import { remake } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { copyIndex, refuse, type Scope, type Tile } from './scope.ts';

/** A finished REDUCE (one value per kept copy, or a cell of memory per column) or STAGE (memory with one section per kept copy). */
export type Result =
  | { readonly kind: 'columns'; readonly column: Range; readonly memory: KNode }
  | { readonly kind: 'values'; readonly tiles: readonly Tile[]; readonly values: readonly KNode[] }
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
  | { readonly kind: 'lanes'; readonly each: readonly KNode[] };

export class Values {
  readonly b: ProgramBuilder;
  readonly scope: Scope;
  readonly results: Map<KNode, Result> = new Map();

  constructor(b: ProgramBuilder, scope: Scope) {
    this.b = b;
    this.scope = scope;
  }

  /** The value under the open loops: a scalar, or a vector if it depends on the vector tile. */
  lower(root: KNode): KNode {
    const { scope } = this;
    const { free } = scope;
    const known = this.#find(root);
    if (known !== undefined) return known;
    const stack = [root];
    while (stack.length > 0) {
      const n = stack[stack.length - 1]!;
      const memo = scope.memoFor(free.of(n));
      if (!memo.has(n)) {
        // Of a LOAD the alternative; address and gate are lowered with it.
        const first = n.op === 'LOAD' ? 3 : 0;
        const end = n.op === 'REDUCE' || n.op === 'RANGE' ? 0 : n.src.length;
        const before = stack.length;
        for (let i = first; i < end; i++) {
          const s = n.src[i] as KNode;
          if (!scope.memoFor(free.of(s)).has(s)) stack.push(s);
        }
        if (stack.length > before) continue;
        memo.set(n, this.#lowerOne(n));
      }
      stack.pop();
    }
    return this.#find(root)!;
  }

  #find(n: KNode): KNode | undefined {
    return this.scope.memoFor(this.scope.free.of(n)).get(n);
  }

  #lowerOne(n: KNode): KNode {
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
        if (result?.kind !== 'values') refuse(n, 'is used before it is computed');
        const value = result.values[copyIndex(result.tiles)]!;
        return this.scope.lane >= 0 && value.lanes > 1 ? e.lane(value, this.scope.lane) : value;
      }
      case 'LOAD':
        return this.#load(n);
      default: {
        const src: KNode[] = [];
        for (let i = 0; i < n.src.length; i++) src.push(this.#find(n.src[i] as KNode)!);
        return remake(e, n, src);
      }
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
    const place = (i: KNode, lane: number): KNode => e.add(e.mul(i, width), section * width + (width > 1 ? lane : 0));

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
    const each: KNode[] = [];
    for (let k = 0; k < lanes; k++) {
      each.push(
        e.load(memory, place(laneOf(e, address, k), k), gates?.[k], alt && (alt.lanes > 1 ? e.lane(alt, k) : alt)),
      );
    }
    return e.vec(each);
  }

  /** A scalar load, also where its alternative is a vector. */
  #gated(memory: KNode, index: KNode, gate: KNode | undefined, alt: KNode | undefined): KNode {
    const { e } = this.scope;
    if (gate === undefined || alt === undefined || alt.lanes === 1) return e.load(memory, index, gate, alt);
    return e.where(gate, e.load(memory, index, gate), alt);
  }

  #memoryOf(stage: KNode): Extract<Result, { kind: 'memory' }> {
    const result = this.results.get(stage);
    if (result?.kind !== 'memory') refuse(stage, 'is used before it is computed');
    return result;
  }

  #gates(gate: KNode): KNode[] {
    const { scope } = this;
    const lanes = scope.vector!.lanes;
    if (!scope.isVector(scope.free.of(gate))) return new Array<KNode>(lanes).fill(this.lower(gate));
    return Array.from({ length: lanes }, (_, k) => scope.atLane(k, () => this.lower(gate)));
  }

  /** How an index moves over the lanes. */
  address(index: KNode): Address {
    const { scope } = this;
    const { e } = scope;
    const { range, lanes } = scope.vector!;
    if (!scope.free.has(index, range)) return { kind: 'same', base: this.lower(index) };
    const form = linearOf(index);
    const at = form.terms.indexOf(range);
    if (at >= 0 && form.terms.every((t, i) => i === at || !scope.free.has(t, range))) {
      const base = scope.atLane(0, () => this.lower(index));
      const stride = form.coefs[at]!;
      if (stride === 1) return { kind: 'unit', base };
      return { kind: 'lanes', each: Array.from({ length: lanes }, (_, k) => e.add(base, k * stride)) };
    }
    const each = Array.from({ length: lanes }, (_, k) => scope.atLane(k, () => this.lower(index)));
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
  return address.kind === 'same' ? address.base : e.add(address.base, k);
}
