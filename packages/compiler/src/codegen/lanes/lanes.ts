/**
 * Vectorises loops of a program: independent iterations become lanes.
 *
 * In: a program for a target whose groups are one thread. Out: one with the same results, bit by bit. This is for programs that are written
 * as statements. Loop nests get their vectors in `loops/`, before they are statements, where more is known of them.
 *
 * Loops are tried from the outermost on (facts.ts). A loop that is vectorised is written three times: the iterations before all bounds hold,
 * whole vectors, and the remainder.
 */
import { endsOf } from '../../ir/block-ends.ts';
import { ProgramBuilder } from '../../ir/builder/builder.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode, KNodeOf, Program, ProgramNode } from '../../ir/ir.ts';
import { assumeBounds, highOf, lowOf } from '../../ir/node.ts';
import { costOf, programOf } from '../../ir/program.ts';
import { remake } from '../../ir/rewrite.ts';
import type { CodegenCaps } from '../lowering.ts';
import { type LaneFacts, laneFacts, memoryIn } from './facts.ts';

/** A loop is vectorised if it has at least this many vector operations for each access that is done lane by lane. */
const worth = 3;

/** The program with vectors wherever loops allow it and they pay; the same object if nothing changes. */
export function withLanes(program: Program, caps: CodegenCaps): Program {
  if (caps.simt || caps.vectorBytes <= 4 || !program.body.some((n) => n.op === 'LOOP')) return program;
  const writer = new LaneWriter(program, caps);
  const body = writer.whole();
  return body === null ? program : body;
}

class LaneWriter {
  readonly #program: Program;
  readonly #caps: CodegenCaps;
  readonly #b = new ProgramBuilder();
  readonly #e: Exprs = this.#b.e;
  readonly #body: readonly ProgramNode[];
  readonly #ends: Int32Array;
  readonly #env = new Map<KNode, KNode>();
  #vectors = 0;

  constructor(program: Program, caps: CodegenCaps) {
    this.#program = program;
    this.#caps = caps;
    this.#body = program.body;
    this.#ends = endsOf(program);
  }

  whole(): Program | null {
    this.#scalar(0, this.#body.length, true);
    if (this.#vectors === 0) return null;
    const { name, grid, group, groups, scalars, transforms, params } = this.#program;
    const e = this.#e;
    const made = this.#b.build({
      name,
      grid,
      group,
      scalars,
      transforms,
      groups,
      params: params.map((p) => memoryIn(e, p) as KNodeOf<'PARAM'>),
    });
    return programOf({ ...made, cost: costOf(made.body, new Map(), 1) });
  }

  /** Writes the body from `at` to `end` unchanged; with `ask`, inner loops may be vectorised. */
  #scalar(at: number, end: number, ask: boolean): void {
    for (let i = at; i < end; i++) {
      const n = this.#body[i]!;
      const ends = this.#ends[i]!;
      if (n.op === 'LOOP') {
        if (!ask || !this.#loop(i, ends))
          this.#b.loop(
            this.#of(n.src[0]),
            (v) => {
              this.#env.set(n, v);
              this.#scalar(i + 1, ends, ask);
            },
            n.arg,
          );
        i = ends;
      } else if (n.op === 'IF') {
        this.#b.ifThen(this.#of(n.src[0]), () => this.#scalar(i + 1, ends, ask));
        i = ends;
      } else this.#one(n);
    }
  }

  #of(n: KNode): KNode {
    return this.#env.get(n)!;
  }

  #one(n: ProgramNode): void {
    const b = this.#b;
    const src = n.src.map((s) => this.#of(s));
    switch (n.op) {
      case 'STORE':
        b.store(src[0]!, src[1]!, src[2]!, src[3]);
        return;
      case 'ATOMIC':
        b.atomic(n.arg.op, src[0]!, src[1]!, src[2]!, src[3]);
        return;
      case 'BARRIER':
        b.barrier(n.arg?.part);
        return;
      default:
        this.#env.set(n, this.#value(n, src));
    }
  }

  #value(n: ProgramNode, src: readonly KNode[]): KNode {
    const [b, e] = [this.#b, this.#e];
    switch (n.op) {
      case 'PARAM':
      case 'SCALAR':
        return memoryIn(e, n);
      case 'SHARED':
        return b.shared(n.arg.name, n.dtype, n.arg.length);
      case 'REG':
        return b.reg(n.arg.name, n.dtype, n.lanes, n.arg.length);
      case 'LOAD':
        return b.load(src[0]!, src[1]!, n.lanes, src[2], src[3]);
      default: {
        const made = remake(e, n, src);
        if (n.dtype === 'int32' && n.lanes === 1 && made.op !== 'CONST') assumeBounds(made, lowOf(n), highOf(n));
        return made;
      }
    }
  }

  /** Writes a loop as vectors and a remainder; false if it is not vectorised. */
  #loop(start: number, end: number): boolean {
    const [b, e, env] = [this.#b, this.#e, this.#env];
    const loop = this.#body[start] as KNodeOf<'LOOP'>;
    const facts = laneFacts(e, this.#body, start, end, env);
    if (facts === null || facts.apart * worth > facts.whole) return false;
    const extent = highOf(loop.src[0]);
    const bytes = this.#caps.fittingBytes?.(extent, facts.bytes) ?? this.#caps.vectorBytes;
    const lanes = Math.floor(bytes / facts.bytes);
    if (lanes < 2 || extent < lanes) return false;
    // An inner loop with contiguous accesses is the better one.
    if (facts.apart > 0 && this.#hasUnit(start + 1, end)) return false;
    this.#vectors++;
    const total = this.#of(loop.src[0]);
    const none = e.i32(0);
    const within = (x: KNode): KNode => e.max(e.min(x, total), 0);
    const first = b.place(facts.from.reduce<KNode>((most, x) => e.max(most, within(x)), none));
    const last = b.place(facts.to.reduce<KNode>((least, x) => e.min(least, within(x)), total));
    const one =
      (before: KNode): ((i: KNode) => void) =>
      (i) => {
        const at = e.add(before, i);
        if (at.op !== 'CONST') assumeBounds(at, lowOf(loop), highOf(loop));
        env.set(loop, at);
        this.#scalar(start + 1, end, false);
      };
    b.loop(first, one(none));
    const trips = b.place(e.idiv(e.max(e.sub(last, first), 0), lanes));
    const written = { body: this.#body, ends: this.#ends, env };
    b.loop(trips, (i) =>
      new VectorWriter(b, written, facts, lanes, loop, e.add(first, e.mul(i, lanes))).write(start + 1, end),
    );
    const done = b.place(e.add(first, e.mul(trips, lanes)));
    b.loop(e.sub(total, done), one(done));
    return true;
  }

  /** True if an inner loop may be vectorised with contiguous accesses. */
  #hasUnit(at: number, end: number): boolean {
    for (let i = at; i < end; i++) {
      const n = this.#body[i]!;
      if (n.op !== 'LOOP') continue;
      // Only facts from outside of all loops are known here, so variables of loops are symbols.
      const known = new Map(this.#env);
      for (let j = at - 1; j < i; j++) {
        const m = this.#body[j]!;
        if (m.dtype !== 'void' && !known.has(m)) known.set(m, m);
      }
      const facts = laneFacts(this.#e, this.#body, i, this.#ends[i]!, known);
      if (facts !== null && facts.apart === 0) return true;
    }
    return false;
  }
}

/** The program that is written anew: its body, the ends of its blocks, and what its nodes became so far. */
interface Written {
  readonly body: readonly ProgramNode[];
  readonly ends: Int32Array;
  readonly env: Map<KNode, KNode>;
}

/** Writes one iteration for all lanes. */
class VectorWriter {
  readonly #b: ProgramBuilder;
  readonly #e: Exprs;
  readonly #body: readonly ProgramNode[];
  readonly #ends: Int32Array;
  readonly #env: Map<KNode, KNode>;
  readonly #facts: LaneFacts;
  readonly #lanes: number;
  readonly #vectors = new Map<KNode, KNode>();
  readonly #each = new Map<KNode, KNode[]>();
  /** Nodes that depend on numbers read from memory. */
  readonly #read = new Set<KNode>();

  constructor(
    b: ProgramBuilder,
    { body, ends, env }: Written,
    facts: LaneFacts,
    lanes: number,
    loop: KNodeOf<'LOOP'>,
    first: KNode,
  ) {
    this.#b = b;
    this.#e = b.e;
    this.#body = body;
    this.#ends = ends;
    this.#env = env;
    this.#facts = facts;
    this.#lanes = lanes;
    env.set(loop, first);
    this.#vectors.set(loop, b.e.add(first, b.e.iota(lanes)));
    this.#each.set(
      loop,
      Array.from({ length: lanes }, (_, k) => b.e.add(first, k)),
    );
    for (const memory of facts.variables)
      this.#vectors.set(memory, b.reg((memory as KNodeOf<'REG'>).arg.name, memory.dtype as 'float32', lanes));
  }

  write(at: number, end: number): void {
    for (let i = at; i < end; i++) {
      const n = this.#body[i]!;
      const ends = this.#ends[i]!;
      if (n.op === 'LOOP') {
        this.#b.loop(
          this.#uniform(n.src[0]),
          (v) => {
            this.#env.set(n, v);
            this.write(i + 1, ends);
          },
          n.arg,
        );
        i = ends;
      } else if (n.op === 'IF') {
        this.#b.ifThen(this.#uniform(n.src[0]), () => this.write(i + 1, ends));
        i = ends;
      } else if (n.op === 'STORE') this.#store(n);
      else if (n.dtype !== 'void') this.#value(n);
    }
  }

  #varies(n: KNode): boolean {
    return this.#facts.varying.has(n);
  }

  /** The value of a node in which lanes agree. */
  #uniform(n: KNode): KNode {
    return this.#env.get(n)!;
  }

  #vector(n: KNode): KNode {
    return this.#vectors.get(n) ?? this.#uniform(n);
  }

  #at(n: KNode, k: number): KNode {
    if (!this.#varies(n)) return this.#uniform(n);
    if (this.#read.has(n)) return this.#e.lane(this.#vector(n), k);
    let each = this.#each.get(n);
    if (each === undefined) this.#each.set(n, (each = []));
    if (each[k] !== undefined) return each[k];
    const settled = this.#facts.settled.get(n);
    const made =
      settled !== undefined
        ? this.#at(settled!, k)
        : remake(
            this.#e,
            n,
            n.src.map((s) => this.#at(s, k)),
          );
    return (each[k] = made);
  }

  #all(n: KNode): KNode[] {
    return Array.from({ length: this.#lanes }, (_, k) => this.#at(n, k));
  }

  /** The first lane's index if the lanes are contiguous. */
  #unit(index: readonly KNode[]): KNode | null {
    const first = index[0]!;
    return index.every((x, k) => x === this.#e.add(first, k)) ? first : null;
  }

  #value(n: ProgramNode): void {
    const [b, e, env] = [this.#b, this.#e, this.#env];
    const settled = this.#facts.settled.get(n);
    if (settled === null) {
      env.set(n, e.bool(true));
      return;
    }
    if (n.op === 'PARAM' || n.op === 'SCALAR') {
      env.set(n, memoryIn(e, n));
      return;
    }
    if (!this.#varies(n)) {
      const same = (s: KNode): KNode => (this.#varies(s) ? this.#at(s, 0) : this.#uniform(s));
      const src = n.src.map(same);
      env.set(n, n.op === 'LOAD' ? b.load(src[0]!, src[1]!, 1, src[2], src[3]) : remake(e, n, src));
      return;
    }
    if (n.op === 'LOAD') {
      this.#read.add(n);
      this.#vectors.set(n, this.#load(n));
      return;
    }
    if (n.src.some((s) => this.#read.has(s))) this.#read.add(n);
    if (settled !== undefined) {
      this.#vectors.set(n, this.#vector(settled));
      return;
    }
    this.#vectors.set(
      n,
      e.splat(
        remake(
          e,
          n,
          n.src.map((s) => this.#vector(s)),
        ),
        this.#lanes,
      ),
    );
  }

  #load(n: KNodeOf<'LOAD'>): KNode {
    const [b, e] = [this.#b, this.#e];
    const [memory, index, gate, other] = n.src;
    if (memory.op === 'REG') return b.load(this.#vectors.get(memory)!, 0);
    const from = this.#uniform(memory);
    const places = this.#all(index);
    const gates = gate === undefined ? undefined : this.#all(gate);
    const alone = gates === undefined || gates.every((g) => g === gates[0]);
    const start = alone ? this.#unit(places) : null;
    if (start !== null)
      return b.load(from, start, this.#lanes, gates?.[0], other && e.splat(this.#vector(other), this.#lanes));
    return e.vec(places.map((place, k) => b.load(from, place, 1, gates?.[k], other && this.#laneOf(other, k))));
  }

  #laneOf(n: KNode, k: number): KNode {
    return this.#varies(n) ? this.#e.lane(this.#vector(n), k) : this.#uniform(n);
  }

  #store(n: KNodeOf<'STORE'>): void {
    const [b, e] = [this.#b, this.#e];
    const [memory, index, value, gate] = n.src;
    if (memory.op === 'REG') {
      const variable = this.#vectors.get(memory);
      if (variable === undefined) b.store(this.#uniform(memory), 0, this.#uniform(value));
      else b.store(variable, 0, e.splat(this.#vector(value), this.#lanes));
      return;
    }
    const to = this.#uniform(memory);
    const places = this.#all(index);
    const gates = gate === undefined ? undefined : this.#all(gate);
    const alone = gates === undefined || gates.every((g) => g === gates[0]);
    const start = alone ? this.#unit(places) : null;
    if (start !== null) {
      b.store(to, start, e.splat(this.#vector(value), this.#lanes), gates?.[0]);
      return;
    }
    const kept = b.place(this.#vector(value));
    for (const [k, place] of places.entries()) b.store(to, place, kept.lanes > 1 ? e.lane(kept, k) : kept, gates?.[k]);
  }
}
