/**
 * The reference interpreter: what a program means.
 *
 * Groups run one after another; the threads of a group take turns, each up to the next barrier or exchange in subgroups. Every access is checked
 * (memory.ts) and every operation rounds by the contract (values.ts).
 */
import type { TypedArray } from '../shape/dtype.ts';
import { type CompiledProgram, compileProgram, type ThreadState } from './compile.ts';
import { multiply } from './matrix.ts';
import { type Cells, GroupRecord, PrivateCells, SharedCells, TensorCells } from './memory.ts';
import type { Value } from './values.ts';
import type { KNodeOf, Program } from '../ir/ir.ts';
import { matrixThreads } from '../ir/matrix.ts';
import { Barriers, hasParts } from '../ir/parts.ts';

/** How the threads of a group form subgroups: `size` neighbours each, or with `dealt` threads at equal distances. */
export interface Subgroups {
  readonly size: number;
  readonly dealt?: boolean;
}

/**
 * Runs a program on host arrays, one per PARAM slot, and numbers, one per SCALAR slot.
 *
 * @throws RangeError for an access outside of a memory
 * @throws Error for races between threads or groups, reads of uninitialised memory, barriers that not all threads reach
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'int32', 'write', 3);
 * p.loop(3, (i) => p.store(y, i, p.e.mul(i, i)));
 * const squares = new Int32Array(3);
 * interpret(p.build({ name: 'squares' }), [squares]);
 * squares; // [0, 1, 4]
 */
export function interpret(
  program: Program,
  buffers: readonly TypedArray[],
  scalars: readonly Value[] = [],
  subgroups: Subgroups = { size: 1 },
): void {
  const compiled = compileProgram(program);
  if (scalars.length < program.scalars.length) {
    throw new Error(`[interpret] ${program.name}: ${scalars.length} scalars given, ${program.scalars.length} needed`);
  }
  const barriers = hasParts(program.body) ? new Barriers() : null;
  const threads = makeThreads(program, compiled, tensorCells(program, buffers), scalars, subgroups, barriers);
  const [gx, gy, gz] = program.grid;
  let epoch = 0;
  let number = 0;
  for (let z = 0; z < gz; z++) {
    for (let y = 0; y < gy; y++) {
      for (let x = 0; x < gx; x++) {
        number++;
        for (const t of threads) t.enter(number, x, y, z);
        epoch = runGroup(program, compiled, threads, epoch, barriers);
      }
    }
  }
}

/** Runs all threads from barrier to barrier, and from one exchange in subgroups to the next; returns the last epoch used. */
function runGroup(
  program: Program,
  { instructions }: CompiledProgram,
  threads: readonly Thread[],
  before: number,
  barriers: Barriers | null,
): number {
  barriers?.pass(null, before + 1);
  for (let epoch = before + 1; ; ) {
    const stop = threads[0]!.run(epoch);
    for (let i = 1; i < threads.length; i++) {
      if (threads[i]!.run(epoch) !== stop) {
        throw new Error(`[interpret] ${program.name}: threads 0 and ${i} of a group wait at different barriers`);
      }
    }
    if (stop < 0) return epoch;
    const at = instructions[stop - 1]!;
    if (at.kind === 'subgroup') exchange(at, threads);
    else if (at.kind === 'matrix') {
      for (let first = 0; first < threads.length; first += matrixThreads)
        multiply(
          at.places,
          threads.slice(first, first + matrixThreads).map((t) => t.values),
        );
    } else {
      epoch++;
      if (at.kind === 'barrier') barriers?.pass(at.part, epoch);
    }
  }
}

/** Combines the values of a subgroup's threads; each of them gets the result. */
function exchange(
  { from, to, combine }: Extract<CompiledProgram['instructions'][number], { kind: 'subgroup' }>,
  threads: readonly Thread[],
): void {
  const whole = new Map<number, Value>();
  for (const { values, subgroup } of threads) {
    const before = whole.get(subgroup);
    const own = values[from]!;
    whole.set(subgroup, before === undefined ? own : combine(before, own));
  }
  for (const { values, subgroup } of threads) values[to] = whole.get(subgroup)!;
}

/** Position of a thread in its subgroup. */
interface Membership {
  readonly of: number;
  readonly count: number;
  readonly leads: boolean;
}

function memberOf(thread: number, threads: number, { size, dealt = false }: Subgroups): Membership {
  const count = Math.ceil(threads / size);
  return dealt
    ? { of: thread % count, count, leads: thread < count }
    : { of: Math.floor(thread / size), count, leads: thread % size === 0 };
}

/** Cells of the parameters by slot. Parameters whose memory overlaps share a record of accesses. */
function tensorCells(program: Program, buffers: readonly TypedArray[]): ReadonlyMap<number, Cells> {
  const spans = program.params.map((p) => {
    const array = buffers[p.arg.slot];
    if (!array) throw new Error(`[interpret] ${program.name}: no buffer for parameter ${p.arg.slot}`);
    const start = array.byteOffset;
    return { p, array, start, end: start + Math.min(array.length, p.arg.length) * array.BYTES_PER_ELEMENT };
  });
  const cells = new Map<number, Cells>();
  const left = new Set(spans);
  for (const first of spans) {
    if (!left.delete(first)) continue;
    const together = [first];
    let [start, end] = [first.start, first.end];
    for (let grown = true; grown; ) {
      grown = false;
      for (const other of left) {
        if (other.array.buffer !== first.array.buffer || other.start >= end || other.end <= start) continue;
        [start, end] = [Math.min(start, other.start), Math.max(end, other.end)];
        together.push(other);
        left.delete(other);
        grown = true;
      }
    }
    const written = together.some(({ p }) => p.arg.access !== 'read');
    const unit = Math.min(...together.map(({ array }) => array.BYTES_PER_ELEMENT));
    const record = written ? new GroupRecord(start, end, unit) : null;
    for (const { p, array } of together) {
      const { slot, length, access } = p.arg;
      cells.set(slot, new TensorCells(`parameter ${slot}`, array, p.dtype, length, access !== 'read', record));
    }
  }
  return cells;
}

function makeThreads(
  program: Program,
  compiled: CompiledProgram,
  tensors: ReadonlyMap<number, Cells>,
  scalars: readonly Value[],
  subgroups: Subgroups,
  barriers: Barriers | null,
): Thread[] {
  const [sx, sy, sz] = program.group;
  const count = sx * sy * sz;
  const length = (n: KNodeOf<'SHARED'> | KNodeOf<'REG'>): number => n.arg.length * n.lanes;
  const shared = new Map<object, Cells>();
  for (const n of compiled.memories) {
    if (n.op !== 'SHARED') continue;
    shared.set(
      n,
      count > 1 ? new SharedCells(n.arg.name, length(n), barriers) : new PrivateCells(n.arg.name, length(n)),
    );
  }
  const threads: Thread[] = [];
  for (let z = 0; z < sz; z++) {
    for (let y = 0; y < sy; y++) {
      for (let x = 0; x < sx; x++) {
        const cells = compiled.memories.map((n) => {
          if (n.op === 'PARAM') return tensors.get(n.arg.slot)!;
          return n.op === 'SHARED' ? shared.get(n)! : new PrivateCells(n.arg.name, length(n));
        });
        const membership = memberOf(threads.length, count, subgroups);
        threads.push(new Thread(compiled, cells, scalars, [x, y, z], threads.length + 1, membership));
      }
    }
  }
  return threads;
}

class Thread {
  readonly #program: CompiledProgram;
  readonly #state: ThreadState & { readonly group: number[] };
  #at = 0;

  constructor(
    program: CompiledProgram,
    cells: readonly Cells[],
    scalars: readonly Value[],
    local: readonly number[],
    thread: number,
    { of, count, leads }: Membership,
  ) {
    this.#program = program;
    // Filled with a fraction, so that the array holds unboxed numbers from the start.
    const values: Value[] = new Array<Value>(program.registers).fill(0.5);
    const by = { group: 0, thread, epoch: 0 };
    this.#state = {
      values,
      cells,
      scalars,
      group: [0, 0, 0],
      local,
      subgroup: [of],
      subgroups: [count],
      leader: [Number(leads)],
      by,
      copies: [[]],
    };
  }

  get values(): Value[] {
    return this.#state.values;
  }

  get subgroup(): number {
    return this.#state.subgroup[0]!;
  }

  /** Goes to the start of the program, in the next group. */
  enter(number: number, x: number, y: number, z: number): void {
    const { group, by } = this.#state;
    group[0] = x;
    group[1] = y;
    group[2] = z;
    by.group = number;
    this.#state.copies = [[]];
    this.#at = 0;
  }

  /** Runs to the next barrier and returns its position, or -1 at the end. */
  run(epoch: number): number {
    const { instructions } = this.#program;
    const state = this.#state;
    const { values } = state;
    state.by.epoch = epoch;
    let at = this.#at;
    while (at < instructions.length) {
      const i = instructions[at++]!;
      switch (i.kind) {
        case 'step':
          i.step(state);
          break;
        case 'loop':
          values[i.counter] = 0;
          values[i.limitAt] = values[i.limit]!;
          if (values[i.limit]! <= 0) at = i.end + 1;
          break;
        case 'endloop':
          values[i.counter] = (values[i.counter] as number) + 1;
          if (values[i.counter]! < values[i.limitAt]!) at = i.start + 1;
          break;
        case 'if':
          if (values[i.condition] === 0) at = i.end + 1;
          break;
        case 'endif':
          break;
        case 'barrier':
        case 'subgroup':
        case 'matrix':
          this.#at = at;
          return at;
        default:
          i satisfies never;
      }
    }
    this.#at = at;
    return -1;
  }
}
