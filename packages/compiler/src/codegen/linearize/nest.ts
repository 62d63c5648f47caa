/**
 * Writes the loops and statements of one nest: opens its ranges as loops, tiles or threads, and computes reductions and stages
 * as soon as the loops that they depend on are open.
 *
 * In: stores that share loops, whose ranges have their kinds. Out: statements in the program builder. Values are written by
 * scope.ts, single reductions by reduce.ts, vector loops by vector.ts; linearize.ts calls this for each nest of a kernel.
 */
import { told } from '#shown-as';
import {
  countOf,
  isSizedEnd,
  ownRanges,
  type Range,
  sizedStrideOf,
  sizeOf,
  typicalStride,
} from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopStore } from '../../ir/ir.ts';
import { assumeBounds, highOf, type Known, lowOf, newMark, nodesOf } from '../../ir/node.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import type { CodegenCaps, SumOptions } from '../lowering.ts';
import { isMadeAgain, mayEnterTwice, Reduction } from './reduce.ts';
import { copiesOf, lanesOf, refuse, type Scope, type Values } from './scope.ts';
import { isFixed, type Mode, runModes, vectorModes } from './vector.ts';

/**
 * Most elements per iteration of a loop if each is read from an arbitrary address. Processors prefetch by the address of the load
 * instruction. With 64 such loads, elements outside of the caches took twice as long as with 16.
 */
const mostScattered = 16;

/**
 * Most elements per iteration that are read one by one at a fixed stride: a column of a narrow matrix, a window. Each is separate code, and more
 * vectors do not make reading faster.
 */
const mostStrided = 64;

/** From this many nodes on, the last vector is moved back to end at the end, and shares the body of the others. Narrower vectors get no body. */
const leastAlike = 24;

/** True for expressions that simplify if the position in a vector is known: quotients and conditions of positions. */
function tellsPlaces({ op, src }: KNode): boolean {
  return op === 'IDIV' || op === 'IREM' || ((op === 'LT' || op === 'LE' || op === 'EQ') && src[0]!.dtype === 'int32');
}

interface Job {
  /** Ranges that are not open yet. */
  readonly ranges: readonly Range[];
  /** Expressions needed inside. */
  readonly roots: readonly KNode[];
  /** The condition under which it writes. */
  readonly gate?: KNode | undefined;
  /**
   * Writes statements at the innermost point. `holds`: the gate is known to hold there, so it is not tested. The returned function
   * is called when all jobs at this point have read their inputs.
   */
  readonly run: (holds?: boolean) => (() => void) | undefined;
  /** True if `run` must be called once per combination of open tiles. */
  readonly perCopy: boolean;
  /** True if running twice for an element changes nothing: a store to memory that is not read. */
  readonly repeatable: boolean;
}

export interface NestOptions extends SumOptions {
  readonly lanes: number;
  readonly caps: CodegenCaps;
  /** Threads of a group. */
  readonly threads: number;
}

export class Nest {
  readonly #values: Values;
  readonly #scope: Scope;
  readonly #options: NestOptions;
  readonly #reductions = new Map<KNode, readonly KNode[]>();
  readonly #modes = new Map<Range, readonly Mode[]>();
  readonly #memory = new Map<KNode, { node: KNode; length: number }>();
  /** Loops that are open. */
  #loops = 0;

  constructor(values: Values, options: NestOptions) {
    this.#values = values;
    this.#scope = values.scope;
    this.#options = options;
  }

  /** Writes the stores under the ranges that are open now; ranges opened by the caller are skipped. */
  writeStores(stores: readonly LoopStore[]): void {
    // All stores of one thread share this range. So in the same loops all its reads come before its writes, which may be to the same memory.
    const oneThread = this.#values.b.e.range(1, 'local');
    this.#emit(
      stores.map(({ store, ranges }): Job => {
        const [mem, index, value, gate] = store.src;
        // Without a local range, one thread writes.
        const alone = this.#options.threads > 1 && ranges.every((r) => r.arg.kind !== 'local');
        const all = alone ? [...ranges, oneThread] : ranges;
        return {
          ranges: all.filter((r) => !this.#scope.isOpen(r)),
          roots: gate === undefined ? [value, index] : [value, index, gate],
          gate,
          run: (holds) => this.#values.prepareStore(mem, index, value, holds ? undefined : gate),
          perCopy: true,
          repeatable: !this.#options.simt && mem.op === 'PARAM' && mem.arg.access === 'write',
        };
      }),
    );
  }

  #emit(jobs: readonly Job[]): void {
    const added = this.#computeReady(jobs);
    this.#runHere(jobs.filter((j) => j.ranges.length === 0));
    const groups = new Map<Range, Job[]>();
    for (const job of jobs) {
      const next = job.ranges[0];
      if (next === undefined) continue;
      const group = groups.get(next);
      const inside = { ...job, ranges: job.ranges.slice(1) };
      if (group === undefined) groups.set(next, [inside]);
      else group.push(inside);
    }
    for (const [range, group] of groups) this.#open(range, group);
    for (const n of added) this.#values.results.delete(n);
  }

  #runHere(jobs: readonly Job[]): void {
    const each = jobs.filter((j) => j.perCopy);
    for (const j of jobs) if (!j.perCopy) j.run();
    if (each.length === 0) return;
    const here = (holds: boolean): void => {
      const writes = each.map((j) => j.run(holds));
      for (const write of writes) write?.();
    };
    const write = (): void => this.#scope.forEach(this.#scope.tiles, () => here(false));
    const { simt, caps } = this.#options;
    const roots = each.map((j) => j.roots);
    // In a loop over copies what is not stored is not computed either.
    const gate = this.#gateOf(each);
    const { b } = this.#values;
    const writeOne = (): void =>
      this.#scope.forEach(this.#scope.tiles, () => b.ifThen(this.#values.lower(gate!), () => here(true)));
    if (simt || caps.lowering.copies?.(this.#values, roots, gate === null ? write : writeOne) !== true) write();
  }

  /** The gate that all jobs have, if it is the same for all elements of a vector; else null. */
  #gateOf([first, ...others]: readonly Job[]): KNode | null {
    const gate = first?.gate;
    if (gate === undefined || others.some((j) => j.gate !== gate)) return null;
    const { free, tiles } = this.#scope;
    return tiles.some((t) => t.lanes > 1 && free.of(gate).includes(t.range)) ? null : gate;
  }

  #open(range: Range, jobs: readonly Job[]): void {
    const { b } = this.#values;
    const scope = this.#scope;
    const limit = range.src[0];
    const extent = limit === undefined ? b.e.i32(range.arg.extent) : this.#values.lower(limit);
    // Known bounds of the limit also hold under the loops it depends on, if these are open.
    if (limit !== undefined && isSizedEnd(limit)) assumeBounds(extent, lowOf(limit), highOf(limit));
    const inside = (): void => this.#emit(jobs);
    const repeated = (): void => {
      this.#loops++;
      inside();
      this.#loops--;
    };
    switch (range.arg.kind) {
      case 'loop':
      case 'serial':
      case 'reduce':
        b.loop(extent, (i) => scope.withLoop(range, i, repeated));
        return;
      case 'unroll':
      case 'interleaved':
        if (!isFixed(extent)) refuse(range, told && 'needs a constant extent');
        if (range.arg.extent > 0)
          scope.withTile(range, { base: b.e.i32(0), count: range.arg.extent, lanes: 1 }, inside);
        return;
      case 'vector':
      case 'column': {
        const run = ({ count, lanes }: Mode, first: KNode, from: KNode | null): void => {
          if (count * lanes === 1) scope.withLoop(range, first, repeated);
          else scope.withTile(range, { base: first, count, lanes, from }, repeated);
        };
        const interleaves = scope.tiles.some((t) => t.range.arg.kind === 'interleaved');
        runModes(
          b,
          extent,
          this.#modesOf(range, jobs),
          run,
          interleaves ? (each) => scope.eachInterleaved(each) : null,
        );
        return;
      }
      case 'local': {
        const { threads } = this.#options;
        const thread = b.e.special('local', 0, threads);
        b.ifThen(b.e.lt(thread, extent), () => scope.withLoop(range, thread, inside));
        return;
      }
      case 'grid':
        refuse(range, told && 'cannot be bound inside a nest');
        break;
      default:
        range.arg.kind satisfies never;
    }
  }

  /** Modes of a vector range: fixed ones for a reduction, or chosen by the amount of computation per element. */
  #modesOf(range: Range, jobs: readonly Job[]): readonly Mode[] {
    const fixed = this.#modes.get(range);
    if (fixed !== undefined) return fixed;
    if (this.#scope.tiles.some((t) => t.lanes > 1)) return vectorModes(countOf(range), 1, 1);
    const depends = (n: KNode): boolean => this.#scope.free.has(n, range);
    const roots = jobs.flatMap((j) => j.roots).filter(depends);
    const within = [...nodesOf(roots, (n) => n.src.filter(depends))];
    const nodes = within.length;
    const reduces = within.some((n) => n.op === 'REDUCE');
    const wanted = reduces ? (nodes <= 60 ? 4 : 2) : nodes <= 16 ? 4 : nodes <= 48 ? 2 : 1;
    const { caps, lanes: widest } = this.#options;
    const lanes = caps.lowering.narrower?.(range, widest) ?? widest;
    const most = within.some((n) => this.#isScattered(n, range)) ? mostScattered : mostStrided;
    const strided = most === mostScattered ? 1 : within.reduce((sum, n) => sum + this.#stridedIn(n, range), 0);
    const unroll = strided === 0 ? wanted : Math.max(1, Math.min(wanted, Math.floor(most / (strided * lanes))));
    const together = !reduces || unroll === 1 ? null : this.#options.simt ? 'elements' : 'all';
    const again = jobs.every((j) => j.repeatable);
    const alike = again && nodes >= leastAlike && !within.some(tellsPlaces);
    return vectorModes(countOf(range), lanes, unroll, { together, again, alike, narrower: nodes < leastAlike });
  }

  /** True for a read at arbitrary addresses along a range: it is done lane by lane. */
  #isScattered(n: KNode, range: Range): boolean {
    if (n.op !== 'LOAD') return false;
    const { free } = this.#scope;
    return free.has(n.src[1], range) && sizedStrideOf(free, n.src[1], range) === null;
  }

  /** Elements that are read separately for one lane: at a fixed stride along a range, and in windows that are unrolled. */
  #stridedIn(n: KNode, range: Range): number {
    if (n.op !== 'LOAD') return 0;
    const stride = sizedStrideOf(this.#scope.free, n.src[1], range);
    if (stride === null || typicalStride(stride) === 1) return 0;
    return sizeOf(this.#scope.free.of(n).filter((r) => r.arg.kind === 'unroll' && !this.#scope.isOpen(r)));
  }

  // --- reductions and stages

  /** Computes everything the jobs need that depends only on open ranges. Returns the new nodes. */
  #computeReady(jobs: readonly Job[]): KNode[] {
    const wave = new Map<KNode, number>();
    const waves: KNode[][] = [];
    for (const job of jobs) {
      for (const root of job.roots) {
        for (const n of this.#reductionsIn(root)) {
          if (wave.has(n) || this.#values.results.has(n) || !this.#isReady(n)) continue;
          let at = 0;
          for (const dep of this.#reductionsIn(n.src[0])) at = Math.max(at, (wave.get(dep) ?? -1) + 1);
          wave.set(n, at);
          (waves[at] ??= []).push(n);
        }
      }
    }
    for (const nodes of waves) {
      const registers = nodes.filter((n) => this.#columnOf(n) === null);
      if (registers.length > 0) this.#computeTogether(registers);
      for (const n of nodes) if (!this.#values.results.has(n)) this.#computeColumns(n, nodes);
    }
    return [...wave.keys()];
  }

  /** True if all ranges are open, or all but the column range of a reduction. */
  #isReady(n: KNode): boolean {
    const column = this.#columnOf(n);
    return this.#scope.allOpen(this.#scope.free.of(n).filter((r) => r !== column));
  }

  /** The column range that a reduction depends on and that is not open yet. */
  #columnOf(n: KNode): Range | null {
    if (n.op !== 'REDUCE') return null;
    return this.#scope.free.of(n).find((r) => r.arg.kind === 'column' && !this.#scope.isOpen(r)) ?? null;
  }

  /** Computes a reduction for all its columns, together with those of the same wave that run over the same rows. */
  #computeColumns(first: KNode, wave: readonly KNode[]): void {
    const column = this.#columnOf(first)!;
    // Only rare forms make such ranges.
    this.#options.caps.lowering.rare!()!.reduceColumns(
      wave.filter((n) => this.#columnOf(n) === column) as KNodeOf<'REDUCE'>[],
      ownRanges(first),
      column,
      this.#values,
      this.#options,
      (range, roots, repeatable, run) =>
        this.#emit([{ ranges: [range], roots, run: () => void run(), perCopy: false, repeatable }]),
    );
  }

  /** Every REDUCE and STAGE in an expression, inner ones first. */
  #reductionsIn(root: KNode): readonly KNode[] {
    const known = this.#reductions.get(root);
    if (known !== undefined) return known;
    const found: KNode[] = [];
    const seen = newMark();
    const stack = [root];
    while (stack.length > 0) {
      const n = stack[stack.length - 1] as Known;
      if (n.mark !== seen) {
        const before = stack.length;
        for (let i = 0; i < n.src.length; i++) {
          const s = n.src[i] as Known;
          if (s.mark !== seen) stack.push(s);
        }
        if (stack.length > before) continue;
        n.mark = seen;
        if (n.op === 'REDUCE' || n.op === 'STAGE') found.push(n);
      }
      stack.pop();
    }
    this.#reductions.set(root, found);
    return found;
  }

  #computeTogether(nodes: readonly KNode[]): void {
    const { lanes: widest, threads, caps } = this.#options;
    const modesOf = (r: Range): readonly Mode[] => this.#modes.get(r)!;
    const own = new Set(nodes.flatMap((n) => ownRanges(n)));
    const twice = nodes.every(mayEnterTwice);
    for (const r of own) {
      if (r.arg.kind !== 'vector') continue;
      const blocked = nodes.some((n) => n.src.includes(r, 1) && lanesOf(this.#keptTiles(n)) > 1);
      const lanes = caps.lowering.narrower?.(r, widest, true) ?? widest;
      // Loops inside of it keep a processor busy, and a length that is not fixed would have them in more copies.
      const isBusy =
        r.src.length > 0 && nodes.some((n) => this.#reductionsIn(n.src[0]!).some((x) => this.#scope.free.has(x, r)));
      const unroll = isBusy || r.arg.extent < lanes * 2 ? 1 : r.arg.extent >= lanes * 8 ? 4 : 2;
      // Sums skip elements that were counted already, which pays if the remainder's length is unknown.
      const again = !this.#options.simt && (twice || (r.src.length > 0 && nodes.every(isMadeAgain)));
      // Staged elements are dear one by one, and combining lanes of another width is not.
      const narrower = nodes.some((n) => n.op === 'STAGE');
      const rest = { together: 'elements', again, alike: twice, narrower } as const;
      this.#modes.set(r, vectorModes(countOf(r), blocked ? 1 : lanes, unroll, rest));
    }
    // Threads fill a stage together: none may still read the old contents, and all wait until it is full.
    const filled = threads > 1 && nodes.some((n) => n.op === 'STAGE');
    const { b } = this.#values;
    if (filled && (this.#loops > 0 || nodes.some((n) => this.#memory.has(n)))) b.barrier();
    const finishers: (() => void)[] = [];
    const jobs = nodes.map((n): Job => {
      if (n.op === 'STAGE') return this.#stageJob(n);
      const reduction = new Reduction(this.#values, n as KNodeOf<'REDUCE'>, modesOf, this.#options);
      finishers.push(() => reduction.finish(threads, caps));
      return {
        ranges: [...reduction.own].sort((x, y) => Number(y.arg.kind === 'local') - Number(x.arg.kind === 'local')),
        roots: [reduction.value],
        run: () => void reduction.update(),
        perCopy: false,
        repeatable: false,
      };
    });
    this.#emit(jobs);
    if (filled) b.barrier();
    for (const finish of finishers) finish();
    for (const r of own) this.#modes.delete(r);
  }

  #keptTiles(n: KNode): Scope['tiles'] {
    const free = this.#scope.free.of(n);
    return this.#scope.tiles.filter((t) => free.includes(t.range));
  }

  /** Fills group memory with the staged value; one section per kept copy, lanes of a kept vector adjacent. */
  #stageJob(stage: KNodeOf<'STAGE'>): Job {
    const { b, results } = this.#values;
    const scope = this.#scope;
    const { e } = b;
    const own = ownRanges(stage);
    const value = stage.src[0];
    const tiles = this.#keptTiles(stage);
    const lanes = lanesOf(tiles);
    let flat: KNode = e.i32(0);
    for (const r of own) flat = e.add(e.mul(flat, r.arg.extent), r);
    const length = sizeOf(own);
    const memory = this.#memoryFor(stage, length * copiesOf(tiles) * lanes);
    results.set(stage, { kind: 'memory', tiles, memory, length, lanes });
    return {
      ranges: own,
      roots: [value],
      perCopy: false,
      repeatable: false,
      run: () => {
        const ownTiles = scope.tiles.filter((t) => own.includes(t.range));
        let section = 0;
        scope.forEach([...tiles, ...ownTiles], () => {
          section = tiles.reduce((n, t) => n * t.count + t.copy, 0) * length;
          const at = e.add(flat, section);
          if (lanes === 1) this.#values.prepareStore(memory, at, value, undefined)();
          else b.store(memory, e.mul(this.#values.lower(at), lanes), e.splat(this.#values.lower(value), lanes));
        });
        return undefined;
      },
    };
  }

  #memoryFor(stage: KNodeOf<'STAGE'>, length: number): KNode {
    const known = this.#memory.get(stage);
    if (known !== undefined && known.length >= length) return known.node;
    const bytes = length * dtypeInfo[stage.dtype].bytes;
    if (bytes > this.#options.caps.sharedBytes) {
      refuse(stage, `of ${bytes} bytes: the engine has ${this.#options.caps.sharedBytes} bytes of group memory`);
    }
    const node = this.#values.b.shared(`stage${this.#memory.size}`, stage.dtype, length);
    this.#memory.set(stage, { node, length });
    return node;
  }
}
