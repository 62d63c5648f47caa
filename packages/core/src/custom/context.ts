/**
 * The object `k` with whose methods the body of a custom kernel writes its program.
 *
 * A body runs once per form of kernel and writes a program with `ProgramBuilder`. In the form 'threads' a thread counts as a
 * group of one, as in `programs/`.
 */
import { decompose } from '@polygrad/compiler/arithmetic/decompose/decompose';
import type { CodegenCaps } from '@polygrad/compiler/codegen/lowering';
import { combined } from '@polygrad/compiler/codegen/linearize/reduce';
import type { ProgramBuilder } from '@polygrad/compiler/ir/builder/builder';
import type { Exprs } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { lowOf } from '@polygrad/compiler/ir/node';
import { groupReduce, groupScan } from '@polygrad/compiler/programs/groups';
import type { ProgramWriter } from '@polygrad/compiler/programs/program-set';
import { type DType, dtypeInfo, neutral } from '@polygrad/compiler/shape/dtype';
import { isPlain, say, shown } from '@polygrad/compiler/shape/shown';
import { KernelShared, type Run } from './memory.ts';
import {
  checked,
  choose,
  fail,
  type KernelOperand,
  KernelValue,
  operandOf,
  type Scope,
  type Site,
  site,
  weakOf,
} from './value.ts';

/** Bytes of group memory that a kernel may ask for: WebGPU's default limit, the least of all engines. */
const mostShared = 16384;

/** Combinations of one value per thread. */
export type KernelCombining = 'sum' | 'prod' | 'max' | 'min';

/** What bodies of every form have. */
export class KernelMath {
  /** @internal */
  protected readonly scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.scope = scope;
  }

  /** A number of a dtype. */
  constant(value: number | bigint | boolean, dtype: DType = weakOf(value)): KernelValue {
    return new KernelValue(this.scope, operandOf(this.scope, value, dtype));
  }

  /** `a` where the condition holds, else `b`. Both are computed. */
  where(condition: KernelValue, a: KernelOperand, b: KernelOperand): KernelValue {
    return choose(this.scope, condition, a, b);
  }
}

/** A mutable number, private to a thread. */
export class KernelVariable {
  readonly #run: Run;
  readonly #memory: KNode;

  /** @internal */
  constructor(run: Run, memory: KNode) {
    this.#run = run;
    this.#memory = memory;
  }

  /** What it is now. */
  get value(): KernelValue {
    return checked(this.#run.op, () => new KernelValue(this.#run, this.#run.b.load(this.#memory, 0)));
  }

  set(value: KernelOperand): void {
    const run = this.#run;
    checked(run.op, () => {
      const n = run.ready(operandOf(run, value, this.#memory.dtype as DType));
      if (n.dtype !== this.#memory.dtype)
        fail(run.op, say`${n.dtype} for a variable of ${this.#memory.dtype}; cast it`);
      run.b.store(this.#memory, 0, n);
    });
  }
}

/** Numbers by name that a `fold` carries on. */
export type KernelState = Readonly<Record<string, KernelOperand>>;
type Held<S> = { readonly [N in keyof S]: KernelValue };

/** How a `fold` makes one state of many elements. */
export interface KernelFold<S extends KernelState> {
  /** The neutral element, with which every thread begins: combining it changes nothing. Numbers are float32. */
  readonly start: S;
  /** The state with the i-th element. */
  readonly step: (state: Held<S>, i: KernelValue) => { readonly [N in keyof S]: KernelOperand };
  /** The state that two make, in any order. */
  readonly combine: (a: Held<S>, b: Held<S>) => { readonly [N in keyof S]: KernelOperand };
}

/** An int32 value per axis of a grid: the type tells the first ones apart from those that may not be there. */
export type KernelPlace = readonly [KernelValue, KernelValue, KernelValue, KernelValue, ...KernelValue[]];

/** How one program is written: which threads there are, and what is known of statements. */
export class KernelRun implements Run {
  readonly op: string;
  readonly b: ProgramBuilder;
  readonly e: Exprs;
  readonly w: ProgramWriter;
  /** Its threads are of no group. */
  readonly alone: boolean;
  readonly extents: Map<KNode, number> = new Map();
  readonly sites: Map<KNode, Site> = new Map();
  readonly #caps: CodegenCaps;
  readonly #done: Map<KNode, KNode> = new Map();
  block: { open: boolean } = { open: true };
  certain = true;
  /** True inside a loop whose iterations the threads share. */
  shared = false;
  #bytes = 0;

  constructor(op: string, w: ProgramWriter, caps: CodegenCaps, alone: boolean) {
    this.op = op;
    this.alone = alone;
    this.w = w;
    this.b = w.b;
    this.e = w.e;
    this.#caps = caps;
  }

  ready(n: KNode): KNode {
    return decompose([n], this.e, this.#caps, this.#done)[0]!;
  }

  wrote(at: Site): void {
    const statement = this.b.latest();
    if (statement !== null) this.sites.set(statement, at);
  }

  barrier(at: Site, part: number | null = null): void {
    if (this.shared) fail(this.op, 'a barrier in each(): not all threads take as many turns; end each() before it', at);
    if (this.w.threads === 1) return;
    this.b.barrier(part === null || part >= this.w.threads ? null : part);
    this.wrote(at);
  }

  /** Counts group memory. */
  takes(length: number, dtype: DType): void {
    this.#bytes += length * Math.max(4, dtypeInfo[dtype].bytes);
    if (this.#bytes > mostShared)
      fail(this.op, say`${this.#bytes} bytes of group memory: at most ${mostShared}, which every engine has; use less`);
  }

  /** Writes a block; `certain`: it runs whatever the data is. */
  inBlock(certain: boolean, write: () => void): void {
    const [block, before] = [this.block, this.certain];
    this.block = { open: true };
    this.certain = before && certain;
    try {
      write();
    } finally {
      this.block.open = false;
      this.block = block;
      this.certain = before;
    }
  }
}

/** Throws unless what is to be written is a function. */
function needFunction(op: string, name: string, body: unknown): void {
  if (typeof body !== 'function') fail(op, say`${name} of ${shown(body)}: give a function that writes it`);
}

const whole = (n: unknown): n is number => typeof n === 'number' && Number.isInteger(n) && n >= 0 && n < 2 ** 31;

/**
 * What the body of a kernel with threads is written with. Bodies run once, to write the program: loops over data and decisions by data are methods here.
 *
 * @example
 * const powers = defineKernel({
 *   name: 'powers',
 *   form: 'threads',
 *   inputs: { x: 'float32' },
 *   outputs: { y: 'x' },
 *   body: (k, { x }, { y }) => {
 *     const product = k.variable(1);
 *     k.loop(3, () => product.set(product.value.mul(x.at(k.index))));
 *     y.set(k.index, product.value);
 *   },
 * });
 * powers({ x: tensor([2, 3]) }).y; // [8, 27]
 */
export class KernelContext extends KernelMath {
  /** Which element of the grid this thread, or this group, is for: an int32 value per axis of the grid, and no more. */
  readonly index: KernelPlace;
  /** Threads of a group, a power of two: 1 on engines without groups, and in the form 'threads'. */
  readonly threads: number;
  /** Which thread of its group this one is (int32). */
  readonly thread: KernelValue;
  readonly #run: KernelRun;

  /** @internal */
  constructor(run: KernelRun, index: readonly KNode[]) {
    super(run);
    this.#run = run;
    this.index = index.map((i) => new KernelValue(run, i)) as unknown as KernelPlace;
    this.threads = run.w.threads;
    this.thread = new KernelValue(run, run.w.thread);
  }

  /** A mutable number of this thread. A first value that is no KernelValue is float32, unless a dtype is given. */
  variable(first: KernelOperand, dtype?: DType): KernelVariable {
    const run = this.#run;
    return checked(run.op, () => {
      const given = dtype ?? (first instanceof KernelValue ? first.dtype : weakOf(first));
      const n = run.ready(operandOf(run, first, given));
      if (n.dtype !== given) fail(run.op, say`${n.dtype} for a variable of ${given}; cast it`);
      const memory = run.b.reg('variable', given);
      run.b.store(memory, 0, n);
      return new KernelVariable(run, memory);
    });
  }

  /** Runs the body for 0, 1 .. count - 1, by each thread for itself. The count may depend on data; below 1 nothing is run. */
  loop(count: number | KernelValue, body: (i: KernelValue) => void): void {
    const run = this.#run;
    checked(run.op, () => {
      if (!(count instanceof KernelValue) && !whole(count))
        fail(run.op, say`a loop of ${shown(count)} turns: give a whole number or an int32 value`);
      needFunction(run.op, 'a loop', body);
      const n = run.ready(operandOf(run, count, 'int32'));
      if (n.dtype !== 'int32') fail(run.op, say`a loop of ${n.dtype} turns: needs int32; convert with cast('int32')`);
      run.b.loop(n, (i) => {
        if (typeof count === 'number') run.extents.set(i, count);
        run.inBlock(lowOf(n) > 0, () => body(new KernelValue(run, i)));
      });
    });
  }

  /** Runs the body where a condition holds, and `otherwise` where not. */
  ifThen(condition: KernelValue, body: () => void, otherwise?: () => void): void {
    const run = this.#run;
    checked(run.op, () => {
      needFunction(run.op, 'ifThen()', body);
      if (otherwise !== undefined) needFunction(run.op, 'the other branch of ifThen()', otherwise);
      const c = operandOf(run, condition, 'bool');
      if (c.dtype !== 'bool') fail(run.op, say`a condition of ${c.dtype}: needs bool; compare it`);
      const held = run.b.place(run.ready(c));
      run.b.ifThen(held, () => run.inBlock(false, body));
      if (otherwise !== undefined) run.b.ifThen(run.ready(run.e.not(held)), () => run.inBlock(false, otherwise));
    });
  }

  /** Runs the body for 0, 1 .. count - 1, shared among the threads of the group: thread t takes t, t + threads ... */
  each(count: number, body: (i: KernelValue) => void): void {
    const run = this.#run;
    checked(run.op, () => {
      if (!whole(count))
        fail(run.op, say`each() of ${shown(count)}: give a whole number; use loop() for numbers of data`);
      needFunction(run.op, 'each()', body);
      const { e, b, w } = run;
      const before = run.shared;
      run.shared = before || w.threads > 1;
      try {
        b.loop(Math.ceil(count / w.threads), (turn) => {
          const i = w.threads === 1 ? turn : e.add(e.mul(turn, w.threads), w.thread);
          run.extents.set(i, count);
          const write = (): void => run.inBlock(true, () => body(new KernelValue(run, i)));
          if (count % w.threads === 0) write();
          else b.ifThen(e.lt(i, count), write);
        });
      } finally {
        run.shared = before;
      }
    });
  }

  /** Memory that the threads of the group share, of 0 at first; for the form 'groups'. All of a kernel: at most 16384 bytes. */
  shared(dtype: DType, length: number): KernelShared {
    const run = this.#run;
    return checked(run.op, () => {
      if (!(dtype in dtypeInfo)) fail(run.op, say`${dtype} is no dtype: ${Object.keys(dtypeInfo).join(', ')} are`);
      if (!whole(length) || length === 0)
        fail(run.op, say`shared memory of ${shown(length)} elements: needs at least 1`);
      if (run.alone) fail(run.op, "shared memory in the form 'threads': its threads work alone; use the form 'groups'");
      if (run.shared || run.block !== this.thread.block)
        fail(run.op, 'shared memory in a loop or an ifThen(): ask for it before');
      run.takes(length, dtype);
      const memory = run.b.shared('shared', dtype, length);
      this.each(length, (i) => run.b.store(memory, i.node, run.e.constant(dtype, 0)));
      run.barrier(site());
      return new KernelShared(run, memory, length);
    });
  }

  /**
   * Every thread of the group waits here for all others, and sees what they wrote to shared memory before. With `part`, a power of
   * two, it waits only for its neighbours: the threads with the same Math.floor(thread / part). That costs less on engines that can
   * wait for parts (CUDA); others wait for all. All threads of the group must reach it in either case.
   */
  barrier(part?: number): void {
    const run = this.#run;
    if (part !== undefined && (!whole(part) || part < 2 || (part & (part - 1)) !== 0))
      fail(run.op, say`a barrier for parts of ${shown(part)} threads: give a power of two, at least 2`);
    run.barrier(site(), part);
  }

  #combining(op: KernelCombining, dtype: DType) {
    const { e } = this.#run;
    return {
      identity: e.constant(dtype, neutral(op, dtype)),
      both: (a: KNode, b: KNode): KNode => this.#run.ready(combined(e, op, a, b)),
    };
  }

  #ofGroup<T>(op: KernelCombining, value: KernelValue, make: (n: KNode) => T): T {
    const run = this.#run;
    return checked(run.op, () => {
      if (!['sum', 'prod', 'max', 'min'].includes(op))
        fail(run.op, say`${shown(op)} combines nothing: 'sum', 'prod', 'max' and 'min' do`);
      const n = run.ready(operandOf(run, value, value.dtype));
      if (n.dtype === 'bool') fail(run.op, say`${op} of bool: cast it`);
      const at = site();
      run.barrier(at);
      if (run.w.threads > 1) run.takes(run.w.threads, n.dtype as DType);
      const made = make(n);
      run.barrier(at);
      return made;
    });
  }

  /** The combination of the values of all threads of the group; every thread gets it. */
  reduce(op: KernelCombining, value: KernelValue): KernelValue {
    const run = this.#run;
    return this.#ofGroup(op, value, (n) => {
      return new KernelValue(run, run.b.place(groupReduce(run.w, n, this.#combining(op, value.dtype))));
    });
  }

  /** The combination of the values of the threads before this one (an exclusive scan), and that of all. */
  scan(op: KernelCombining, value: KernelValue): { readonly before: KernelValue; readonly whole: KernelValue } {
    const run = this.#run;
    return this.#ofGroup(op, value, (n) => {
      const { before, whole: all } = groupScan(run.w, n, this.#combining(op, value.dtype));
      return {
        before: new KernelValue(run, run.b.place(run.ready(before))),
        whole: new KernelValue(run, run.b.place(all)),
      };
    });
  }

  /**
   * Reduces 0 .. count - 1, shared among the threads of the group, to one state of several numbers, which every thread gets: a sum and
   * a maximum in one pass, for instance. Elements come in any order.
   */
  fold<const S extends KernelState>(count: number, how: KernelFold<S>): Held<S> {
    const run = this.#run;
    if (!isPlain(how) || !isPlain(how.start))
      fail(
        run.op,
        say`a fold of ${shown(isPlain(how) ? how.start : how)}: give { start, step, combine }, where start has a number by each name`,
      );
    const { start, step, combine } = how;
    needFunction(run.op, 'step of a fold', step);
    needFunction(run.op, 'combine of a fold', combine);
    const names = Object.keys(start);
    const variables = names.map((name) => this.variable(start[name]!));
    const state = (): Held<S> =>
      Object.fromEntries(names.map((name, i) => [name, variables[i]!.value])) as unknown as Held<S>;
    const put = (made: Readonly<Record<string, KernelOperand>>, to: (i: number, value: KernelOperand) => void): void =>
      names.forEach((name, i) => {
        const value = made?.[name];
        if (value === undefined) fail(run.op, say`a fold without ${name}: return all of ${names.join(', ')}`);
        to(i, value);
      });
    // All of the new state is made of the old one.
    const fixed = (made: Readonly<Record<string, KernelOperand>>): Readonly<Record<string, KernelOperand>> =>
      Object.fromEntries(
        Object.entries(made).map(([name, v]) => [
          name,
          v instanceof KernelValue ? new KernelValue(run, run.b.place(run.ready(operandOf(run, v, v.dtype)))) : v,
        ]),
      );
    this.each(count, (i) => put(fixed(step(state(), i)), (at, value) => variables[at]!.set(value)));
    if (this.threads === 1) return state();
    const at = site();
    run.barrier(at);
    const cells = variables.map((v) => {
      const { value } = v;
      run.takes(this.threads, value.dtype);
      const memory = run.b.shared('fold', value.dtype, this.threads);
      run.b.store(memory, run.w.thread, value.node);
      return new KernelShared(run, memory, this.threads);
    });
    run.barrier(at);
    const read = (index: KernelValue | number): Held<S> =>
      Object.fromEntries(names.map((name, i) => [name, cells[i]!.at(index)])) as unknown as Held<S>;
    // The last of two neighbouring parts gets what both make.
    this.loop(Math.log2(this.threads), (doubling) => {
      const distance = this.constant(1, 'int32').leftShift(doubling);
      const last = this.thread.add(1).mul(distance).mul(2).sub(1);
      this.ifThen(last.less(this.threads), () => {
        put(fixed(combine(read(last.sub(distance)), read(last))), (c, value) => cells[c]!.set(last, value));
      });
      run.barrier(at);
    });
    const made = read(this.threads - 1);
    run.barrier(at);
    return made;
  }
}
