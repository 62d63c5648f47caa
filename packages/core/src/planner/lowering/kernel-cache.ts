/**
 * Compiled kernels shared by plans. Similar plans, such as those of the first and second step of a training, have
 * most kernels in common, and most of the cost of a new plan is lowering.
 *
 * The key of a kernel is its loop nest as integers. An entry lives as long as a plan uses it.
 */
import { legalPrograms, type Lowered, type LoweredDispatch, lowerPlain } from '@polygrad/compiler/codegen/lowering';
import type { CompiledKernel, IEngine } from '../../engine/engine.ts';
import type { KNode, LoopKernel } from '@polygrad/compiler/ir/ir';
import { type Known, newMark, sourcesFirst } from '@polygrad/compiler/ir/node';
import { IntWriter, textOf } from '../capture/cache.ts';
import type { LoweredKernel } from './lower.ts';

// Loop nests as integers: equal for nests that are lowered to the same programs. Names do not count.

/** A number for each string, valid in this process. */
const codes = new Map<string, number>();
const out = new IntWriter();
/** The mark before the current nest: its nodes get the marks after it, so a larger mark means "described already". */
let before = 0;

const isKnown = (n: KNode): boolean => (n as Known).mark > before;
const sourcesOf = (n: KNode): readonly KNode[] => n.src;

function push(value: string | number | bigint): void {
  out.reserve(3);
  if (typeof value !== 'string') out.number(value);
  else {
    if (!codes.has(value)) codes.set(value, codes.size);
    out.push(codes.get(value)!);
  }
}

/** Pushes the numbers of nodes; a node seen for the first time is described first, after its sources. */
function pushNodes(nodes: readonly KNode[]): void {
  for (const root of nodes) sourcesFirst(root, isKnown, sourcesOf, describe);
  out.reserve(nodes.length + 1);
  out.list(nodes.map((n) => (n as Known).mark - before));
}

function describe(n: KNode): void {
  (n as Known).mark = newMark();
  push(n.op);
  push(n.dtype);
  push(n.lanes);
  pushNodes(n.src);
  // Every RANGE has a distinct id, so ids do not count.
  for (const name in n.arg) if (name !== 'id') push((n.arg as Record<string, never>)[name]!);
}

/** A loop nest, and the way it is lowered, as a key of a Map. */
export function nestKey({ params, scalars, stores }: LoopKernel, way: string): string {
  before = newMark();
  out.length = 0;
  push(way);
  // Slots that no expression uses are still part of the interface.
  pushNodes(params);
  for (const dtype of scalars) push(dtype);
  for (const { store, ranges } of stores) {
    pushNodes(ranges);
    pushNodes(store.src);
  }
  return textOf(out);
}

/** A kernel lowered for an engine: its dispatches and, after `compile`, the compiled kernels. */
export interface KernelEntry {
  readonly key: string;
  /** Its programs, until they are compiled. They are large, and the engine keeps what it needs of them. */
  lowered: Lowered | null;
  /** What each dispatch binds. */
  readonly bindings: readonly LoweredDispatch['bindings'][];
  readonly temps: readonly number[];
  compiled: readonly CompiledKernel[];
  /** How many plans use it. */
  uses: number;
}

export class KernelCache {
  readonly #engine: IEngine;
  readonly #known = new Map<string, KernelEntry>();

  constructor(engine: IEngine) {
    this.#engine = engine;
  }

  /** Number of kernels in the cache. */
  get size(): number {
    return this.#known.size;
  }

  /** The entry of a loop nest; lowered but not compiled if it is new. */
  find({ loop, isContraction, e }: LoweredKernel): KernelEntry {
    return this.findOr(nestKey(loop, isContraction ? 'contraction' : 'loops'), () => {
      const { caps } = this.#engine;
      return (isContraction ? caps.lowering.contraction(loop, e, this.#engine) : null) ?? lowerPlain(loop, caps);
    });
  }

  /** The entry of a key; a new one gets the programs that `lower` makes. */
  findOr(key: string, lower: () => Lowered): KernelEntry {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const lowered = lower();
    const bindings = lowered.dispatches.map((dispatch) => dispatch.bindings);
    const entry: KernelEntry = { key, lowered, bindings, temps: lowered.temps, compiled: [], uses: 0 };
    this.#known.set(key, entry);
    return entry;
  }

  /** Compiles all new entries at once, and counts one use of each. */
  take(entries: readonly KernelEntry[]): void {
    if (entries.every(({ uses }) => uses > 0)) {
      for (const entry of entries) entry.uses++;
      return;
    }
    const fresh = [...new Set(entries)].filter((entry) => entry.uses === 0);
    const { caps } = this.#engine;
    const programs = fresh.flatMap((entry) => legalPrograms(entry.lowered!, caps));
    let compiled: readonly CompiledKernel[];
    try {
      compiled = this.#engine.compile(programs);
    } catch (error) {
      // No plan uses them, so nothing would ever drop them.
      for (const { key } of fresh) this.#known.delete(key);
      throw error;
    }
    let at = 0;
    for (const entry of fresh) {
      entry.compiled = compiled.slice(at, (at += entry.bindings.length));
      entry.lowered = null;
    }
    for (const entry of entries) entry.uses++;
  }

  /** A plan is gone: entries that no other plan uses are released by the engine. */
  drop(entries: readonly KernelEntry[]): void {
    for (const entry of entries) {
      if (--entry.uses > 0) continue;
      this.#known.delete(entry.key);
      this.#engine.release(entry.compiled);
    }
  }
}
