/**
 * Races in group memory that no data can avoid: two threads of the first group that certainly touch one element, one of them to write it, with no
 * barrier between. Not those that depend on data: what memory holds is not known here, and what depends on it passes. The interpreter finds these.
 *
 * All threads go through the program side by side. Only values that say where and whether group memory is touched are computed, as far as they are
 * known.
 */
import type { DType } from '../../shape/dtype.ts';
import type { Literal } from '../../shape/host.ts';
import { endsOf } from '../block-ends.ts';
import type { KNode, Program } from '../ir.ts';
import type { BinaryOp, UnaryOp } from '../operations.ts';
import { isArithmetic } from '../node.ts';
import { Accesses, Barriers, hasParts } from '../parts.ts';
import { printLine, printNode, printProgram } from '../print.ts';
import { foldBinary, foldBitcast, foldCast, foldUnary } from '../simplify/fold.ts';
import type { Violation } from './verify.ts';

/** One value per thread, or a single one where all threads have the same; undefined where only a run tells it. */
type PerThread<T> = readonly (T | undefined)[];
type Values = PerThread<Literal>;
/** Whether each thread gets to a place: undefined where data decides. */
type Mask = PerThread<boolean>;

/** Values and accesses of threads that are looked at before the rest is taken on trust: some hundredths of a second. */
const mostValues = 2 ** 18;

/** A value for all threads takes about as long as so many for single ones. */
const oneForAll = 4;

const unknown: PerThread<never> = [undefined];
const everyone: Mask = [true];

/** The value of a thread. */
function of<T>(values: PerThread<T>, thread: number): T | undefined {
  return values.length === 1 ? values[0] : values[thread];
}

/** How threads touch memory. Equal ways but 'store' get along with each other. */
type Way = 'load' | 'store' | 'atomic';

const accesses: Readonly<Record<string, Way>> = { LOAD: 'load', STORE: 'store', ATOMIC: 'atomic' };
const saidOf: Readonly<Record<Way, string>> = { load: 'reads', store: 'writes', atomic: 'changes' };

/** What programs that passed do with group memory, as text; the last ones. */
const passed = new Set<string>();
const mostPassed = 32;

/** The way in which a node touches group memory, or null. */
function wayOf(n: KNode): Way | null {
  return n.src[0]?.op === 'SHARED' ? (accesses[n.op] ?? null) : null;
}

function gateOf(n: KNode): KNode | undefined {
  return n.op === 'LOAD' ? n.src[2] : n.src[3];
}

/**
 * Throws if threads of the first group certainly race for an element of group memory; `verifyProgram` has passed before. Programs whose threads
 * copy to group memory beside other work, or multiply tiles, are taken on trust. So is what a very long program does late.
 *
 * @example
 * const p = new ProgramBuilder();
 * const [memory, thread] = [p.shared('s', 'int32', 8), p.e.special('local', 0, 8)];
 * p.store(memory, thread, thread);
 * p.store(p.e.param(0, 'int32', 'write', 8), thread, p.load(memory, p.e.sub(7, thread)));
 * verifyShared(p.build({ name: 'reversed', group: [8, 1, 1] })); // throws Error
 */
export function verifyShared(program: Program): void {
  const { body, group, name } = program;
  if (group[0] * group[1] * group[2] === 1 || !body.some((n) => n.op === 'SHARED')) return;
  if (body.some((n) => n.op === 'COPY' || n.op === 'FRAGMENT')) return;
  const needed = neededIn(program);
  const text = textOf(program, needed);
  if (passed.has(text)) return;
  const walk = new Walk(program, needed);
  walk.run();
  if (walk.found === null) {
    if (passed.size === mostPassed) passed.clear();
    passed.add(text);
    return;
  }
  const { node, wrong } = walk.found;
  throw new Error(`[verify] ${name}: ${node.op} ${wrong}\n${printNode(node)}\nin\n${printProgram(program)}`, {
    cause: walk.found,
  });
}

/** Nodes whose values are asked for, and blocks worth going into. */
interface Needed {
  readonly nodes: ReadonlySet<KNode>;
  readonly registers: ReadonlySet<KNode>;
  /** By position of the LOOP or IF. */
  readonly blocks: ReadonlySet<number>;
}

function neededIn({ body }: Program): Needed {
  const nodes = new Set<KNode>();
  const registers = new Set<KNode>();
  const blocks = new Set<number>();
  const need = (...roots: (KNode | undefined)[]): void => {
    const stack = roots.filter((n) => n !== undefined);
    for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
      if (nodes.has(n)) continue;
      nodes.add(n);
      if (n.op === 'LOAD' && n.src[0].op === 'REG') registers.add(n.src[0]);
      // What a load gives is not known from where it is.
      if (n.op !== 'LOOP' && n.op !== 'LOAD') stack.push(...n.src);
    }
  };
  // What is needed of registers may make more of them needed.
  for (let before = -1; before !== nodes.size + registers.size + blocks.size; ) {
    before = nodes.size + registers.size + blocks.size;
    const open: number[] = [];
    for (const [at, n] of body.entries()) {
      const touches = wayOf(n) !== null;
      const sets = n.op === 'STORE' && registers.has(n.src[0]);
      if (touches) need(n.src[1], gateOf(n));
      if (sets) need(n.src[1], n.src[2], n.src[3]);
      if (touches || sets || n.op === 'BARRIER')
        for (const opener of open) {
          blocks.add(opener);
          need(body[opener]!.src[0]);
        }
      if (n.op === 'LOOP' || n.op === 'IF') open.push(at);
      if (n.op === 'ENDLOOP' || n.op === 'ENDIF') open.pop();
    }
  }
  return { nodes, registers, blocks };
}

/**
 * What a program does with group memory. Kernels for inputs of other sizes often do the same there: matrices of other numbers, or rows of a longer
 * panel that differ in their addresses.
 */
function textOf({ body, group }: Program, { nodes, registers, blocks }: Needed): string {
  const names = new Map<KNode, string>();
  const lines = [group.join()];
  // Inside of a block that nothing is needed of: how many are open there.
  let left = 0;
  for (const [at, n] of body.entries()) {
    const opens = n.op === 'LOOP' || n.op === 'IF';
    const isLeft = left > 0 || (opens && !blocks.has(at));
    if (opens && isLeft) left++;
    if (!isLeft) {
      const sets = n.op === 'STORE' && registers.has(n.src[0]);
      const counts = opens || sets || nodes.has(n) || wayOf(n) !== null || (n.dtype === 'void' && n.op !== 'STORE');
      if (counts || n.op === 'SHARED' || n.op === 'REG') {
        names.set(n, `%${names.size}`);
        lines.push(printLine(n, names));
      }
    }
    if (left > 0 && (n.op === 'ENDLOOP' || n.op === 'ENDIF')) left--;
  }
  return lines.join('\n');
}

/** Who touched elements in one way. */
interface Touched {
  /** A thread other than this one that touched the element with no barrier between, or -1. */
  other(index: number, thread: number): number;
  note(index: number, thread: number): void;
  /** All threads pass a barrier. */
  forget(): void;
}

/** Where some barriers are for parts of the group. */
class TouchedByParts implements Touched {
  readonly #accesses = new Accesses();
  readonly #barriers: Barriers;

  constructor(barriers: Barriers) {
    this.#barriers = barriers;
  }

  other(index: number, thread: number): number {
    return this.#accesses.other(index, thread, this.#barriers);
  }

  note(index: number, thread: number): void {
    this.#accesses.note(index, thread, this.#barriers.now);
  }

  forget(): void {}
}

/** For each element two threads, since the last barrier: 0 for none, then 1 for thread 0. */
class TouchedByAll implements Touched {
  readonly #one: Int32Array;
  readonly #another: Int32Array;

  constructor(length: number) {
    this.#one = new Int32Array(length);
    this.#another = new Int32Array(length);
  }

  other(index: number, thread: number): number {
    const one = this.#one[index]! - 1;
    return one === thread ? this.#another[index]! - 1 : one;
  }

  note(index: number, thread: number): void {
    if (this.#one[index] === 0) this.#one[index] = thread + 1;
    else if (this.#one[index] !== thread + 1) this.#another[index] = thread + 1;
  }

  forget(): void {
    this.#one.fill(0);
    this.#another.fill(0);
  }
}

class Walk {
  readonly #program: Program;
  readonly #ends: Int32Array;
  readonly #needed: Needed;
  readonly #threads: number;
  /** By node, as it was computed last. */
  readonly #values: Map<KNode, Values> = new Map();
  /** Registers that hold one element each. */
  readonly #registers: Map<KNode, Values> = new Map();
  readonly #touched: Map<KNode, Readonly<Record<Way, Touched>>> = new Map();
  /** Those passed, where some are for parts of the group. */
  readonly #barriers: Barriers | null;
  #left = mostValues;
  found: Violation | null = null;

  constructor(program: Program, needed: Needed) {
    this.#program = program;
    this.#ends = endsOf(program);
    this.#needed = needed;
    this.#barriers = hasParts(program.body) ? new Barriers() : null;
    this.#threads = program.group[0] * program.group[1] * program.group[2];
  }

  get #isDone(): boolean {
    return this.found !== null || this.#left < 0;
  }

  run(): void {
    this.#go(0, this.#program.body.length, everyone);
  }

  /** A value for each thread, or one for all where they have the same. */
  #each<T>(inputs: readonly PerThread<unknown>[], make: (thread: number) => T | undefined): PerThread<T> {
    const count = inputs.every(({ length }) => length === 1) ? 1 : this.#threads;
    this.#left -= Math.max(count, oneForAll);
    const all = Array.from({ length: count }, (_, t) => make(t));
    return count > 1 && all.every((value) => value === all[0]) ? [all[0]] : all;
  }

  #of(n: KNode): Values {
    return this.#values.get(n) ?? unknown;
  }

  #go(from: number, to: number, mask: Mask): void {
    const { body } = this.#program;
    for (let at = from; at < to && !this.#isDone; at++) {
      const n: KNode = body[at]!;
      if (n.op === 'LOOP' || n.op === 'IF') {
        const end = this.#ends[at]!;
        if (this.#needed.blocks.has(at)) {
          if (n.op === 'IF') this.#branch(n, at, end, mask);
          else this.#loop(n, at, end, mask);
        }
        at = end;
      } else if (n.op === 'BARRIER') {
        this.#barriers?.pass(n.arg?.part ?? null);
        for (const record of this.#touched.values()) for (const way of Object.values(record)) way.forget();
      } else {
        const way = wayOf(n);
        if (way !== null) this.#touch(n, way, mask);
        if (n.op === 'STORE' && n.src[0].op === 'REG') this.#set(n, mask);
        else if (n.dtype !== 'void' && this.#needed.nodes.has(n)) this.#values.set(n, this.#compute(n));
      }
    }
  }

  #branch(n: KNode, at: number, end: number, mask: Mask): void {
    const held = this.#of(n.src[0]!);
    const inside = this.#each([mask, held], (t) => both(of(mask, t), truth(of(held, t))));
    if (inside.some((is) => is !== false)) this.#go(at + 1, end, inside);
  }

  #loop(n: KNode, at: number, end: number, mask: Mask): void {
    const turns = this.#of(n.src[0]!);
    const taken = this.#each([mask, turns], (t) => (of(mask, t) === false ? 0 : of(turns, t)));
    if (taken.some((count) => count === undefined)) {
      // Some turn of some thread: nothing in it is certain, and registers hold what any turn may leave.
      this.#values.set(n, unknown);
      const maybe = mask.map((is) => (is === false ? false : undefined));
      for (let i = at + 1; i < end; i++) {
        const store: KNode = this.#program.body[i]!;
        if (store.op === 'STORE' && store.src[0].op === 'REG') this.#registers.delete(store.src[0]);
      }
      this.#go(at + 1, end, maybe);
      return;
    }
    const most = taken.reduce<number>((all, count) => Math.max(all, Number(count)), 0);
    for (let i = 0; i < most && !this.#isDone; i++) {
      this.#values.set(n, [i]);
      this.#go(
        at + 1,
        end,
        this.#each([mask, taken], (t) => both(of(mask, t), i < Number(of(taken, t)))),
      );
    }
  }

  /** A store to a register. */
  #set(n: KNode, mask: Mask): void {
    const [memory, , value, gate] = n.src as [KNode, KNode, KNode, KNode | undefined];
    if (!this.#needed.registers.has(memory)) return;
    if (memory.op !== 'REG' || memory.arg.length !== 1 || memory.lanes !== 1) return;
    const [old, next, open] = [this.#registers.get(memory) ?? unknown, this.#of(value), this.#gate(gate)];
    this.#registers.set(
      memory,
      this.#each([mask, open, next, old], (t) => {
        const happens = both(of(mask, t), of(open, t));
        return happens === undefined ? undefined : of(happens ? next : old, t);
      }),
    );
  }

  #gate(gate: KNode | undefined): Mask {
    return gate === undefined ? everyone : this.#of(gate).map(truth);
  }

  /** Notes who touches which elements. */
  #touch(n: KNode, way: Way, mask: Mask): void {
    const [memory, index, value] = n.src as [KNode, KNode, KNode | undefined];
    if (memory.op !== 'SHARED') return;
    this.#left -= this.#threads;
    const { length } = memory.arg;
    let record = this.#touched.get(memory);
    if (record === undefined) {
      const none = (): Touched =>
        this.#barriers === null ? new TouchedByAll(length) : new TouchedByParts(this.#barriers);
      this.#touched.set(memory, (record = { load: none(), store: none(), atomic: none() }));
    }
    const lanes = way === 'load' ? n.lanes : (value?.lanes ?? 1);
    const [first, open] = [this.#of(index), this.#gate(gateOf(n))];
    for (let t = 0; t < this.#threads; t++) {
      const start = of(first, t);
      if (start === undefined || both(of(mask, t), of(open, t)) !== true) continue;
      for (let i = Number(start); i < Number(start) + lanes; i++) {
        if (!(i >= 0 && i < length)) continue;
        for (const other of ['store', 'load', 'atomic'] as const) {
          const by = record[other].other(i, t);
          if (by < 0 || (other === way && way !== 'store')) continue;
          const wrong = `of thread ${t} ${saidOf[way]} element ${i} of group memory, which thread ${by} ${saidOf[other]}, without a barrier between`;
          this.found = { node: n, wrong };
          return;
        }
        record[way].note(i, t);
      }
    }
  }

  #compute(n: KNode): Values {
    if (n.dtype === 'void' || n.lanes !== 1) return unknown;
    const dtype = n.dtype;
    const sources = n.src.map((s) => this.#of(s));
    const [a, b, c] = sources as [Values, Values, Values];
    const from = n.src[0]?.dtype as DType;
    switch (n.op) {
      case 'CONST':
        return [n.arg.value];
      case 'SPECIAL': {
        const { kind, axis } = n.arg;
        if (kind === 'group') return [0];
        if (kind !== 'local') return unknown;
        const [x, y] = this.#program.group;
        return Array.from(
          { length: this.#threads },
          (_, t) => [t % x, Math.floor(t / x) % y, Math.floor(t / (x * y))][axis]!,
        );
      }
      case 'LOAD':
        return n.src[2] === undefined ? (this.#registers.get(n.src[0]) ?? unknown) : unknown;
      case 'CAST':
        return this.#each([a], (t) => known(of(a, t), (x) => foldCast(from, dtype, x)));
      case 'BITCAST':
        return this.#each([a], (t) => known(of(a, t), (x) => foldBitcast(from, dtype, x)));
      case 'WHERE':
        return this.#each(sources, (t) => known(of(a, t), (x) => of(Number(x) !== 0 ? b : c, t)));
      default:
        if (!isArithmetic(n.op) || n.src.length > 2) return unknown;
        if (n.src.length === 1)
          return this.#each([a], (t) => known(of(a, t), (x) => foldUnary(n.op as UnaryOp, from, x)));
        return this.#each(sources, (t) =>
          known(of(a, t), (x) => known(of(b, t), (y) => foldBinary(n.op as BinaryOp, from, x, y))),
        );
    }
  }
}

function known(x: Literal | undefined, f: (x: Literal) => Literal | undefined): Literal | undefined {
  return x === undefined ? undefined : f(x);
}

function truth(x: Literal | undefined): boolean | undefined {
  return x === undefined ? undefined : Number(x) !== 0;
}

function both(a: boolean | undefined, b: boolean | undefined): boolean | undefined {
  if (a === false || b === false) return false;
  return a === undefined || b === undefined ? undefined : true;
}
