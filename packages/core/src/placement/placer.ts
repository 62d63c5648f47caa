/**
 * Chooses engines for the runtime (`Placer` in runtime/state.ts): decisions are made once for each form of a flush (decide.ts) and
 * kept, together with what another decision would have gained.
 *
 * A decision is found by integers, as plans are: the structure of the nodes and where their data is. Flushes that stay where they are only
 * look at the plan, and count down until the decision is reconsidered.
 */
import type { IEngine } from '../engine/engine.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import { cpuEngine, getEngine } from '../engine/registry.ts';
import { UnsupportedError } from '../engine/errors.ts';
import { definitionAt } from '../graph/definition.ts';
import { isOp, type Node } from '../graph/node.ts';
import { nodesBelow } from '../graph/print.ts';
import { IntWriter, PlanCache } from '../planner/capture/cache.ts';
import { type CapturedGraph, storageIn } from '../planner/capture/captured-graph.ts';
import type { Plan } from '../planner/plan.ts';
import { isFree } from '../runtime/placement.ts';
import { stateOf } from '../runtime/run.ts';
import { runs, type EngineState, type Placer } from '../runtime/state.ts';
import { viewSpan } from '../runtime/transfers.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { showShape } from '@polygrad/compiler/shape/errors';
import { type Decision, decide, type PlacementPolicy, type Question } from './decide.ts';
import { AdaptiveThresholds } from './thresholds.ts';

/** Called once for each reason that work went to the CPU engine because another could not do it. */
export type FallbackLogger = (text: string) => void;

/** The settings of an `ExecutionContext`. */
export interface PlacementRules {
  readonly policy: PlacementPolicy;
  readonly thresholds: AdaptiveThresholds;
  readonly cpu: IEngine;
  readonly devices: readonly IEngine[];
  readonly strict: boolean;
  readonly logger: FallbackLogger | null;
}

/** A kept decision and its history. */
interface Kept {
  readonly decision: Decision;
  /** The engine that computes all of it, if it was found through its plan. */
  here: EngineState | null;
  /** Runs so far, and the number of runs at which it is reconsidered. */
  uses: number;
  until: number;
  /** Data was moved on credit for this flush (its first node), so the decision holds only for it. Null: for all. */
  paidFor: number | null;
  /** Buffers whose data it counted. */
  readonly seen: ReadonlySet<number>;
}

/** For a plan: the decisions that its work stays on its engine, for pending work and for work that is read at once. */
class Stays {
  readonly by: object;
  flushed: Kept | null = null;
  read: Kept | null = null;

  constructor(by: object) {
    this.by = by;
  }
}

/** Most kept decisions. */
const mostKept = 512;
/** Most reported reasons. */
const mostReasons = 256;
/** Runs after which every decision is reconsidered. */
const mostRuns = 2 ** 30;
/** Size of the table of guessed engines, by form of flush. */
const mostGuesses = 256;

/** Codes of errors after which another engine may succeed. */
const refusals: readonly (string | undefined)[] = ['COMPILE', 'OUT_OF_MEMORY', 'UNSUPPORTED'];

export class EnginePlacer implements Placer {
  /** Null: work follows its data. */
  rules: PlacementRules | null = null;
  /** Engines that `to` named. */
  readonly #named = new Set<IEngine>();
  /** Nodes that belong on an engine. */
  readonly #homes = new WeakMap<Node, IEngine>();
  #kept = new PlanCache<Kept>(mostKept, () => {});
  /** Replaced with every change of rules or thresholds: decisions noted in plans under an older object do not count. */
  stays: object = {};
  /** Stops listening to changes of thresholds. */
  #stopListening: () => void = () => {};
  /** Engines other than the current one, valid while that is the same. */
  #others: { readonly current: IEngine; readonly list: readonly EngineState[] } | null = null;
  /** The engine that computed all of a flush, by form, if not the current one; and whether there are any. */
  readonly #guesses = new Array<EngineState | null>(mostGuesses).fill(null);
  isAway = false;
  readonly #key = new IntWriter();
  readonly #numbers = new WeakMap<object, number>();
  #count = 0;
  readonly #told = new Set<string>();
  /** Nodes that engines refused to compile, by a key of their operation. */
  readonly #refused = new WeakMap<IEngine, Set<string>>();
  readonly #usual = new AdaptiveThresholds();

  /** Sets the rules and drops all decisions. */
  use(rules: PlacementRules | null): void {
    this.rules = rules;
    this.#stopListening();
    this.#stopListening = rules?.thresholds.listen(() => this.#decideAnew()) ?? (() => {});
    this.#decideAnew();
    this.#told.clear();
  }

  #decideAnew(): void {
    this.stays = {};
    this.#others = null;
    this.#guesses.fill(null);
    this.isAway = false;
    this.#kept = new PlanCache<Kept>(mostKept, () => {});
  }

  /** True if it changes nothing compared with no placer. */
  get isIdle(): boolean {
    return this.rules === null && this.#named.size === 0;
  }

  /** Makes a node belong on an engine. */
  commit(node: Node, engine: IEngine): void {
    if (!this.#named.has(engine)) {
      this.#named.add(engine);
      // The place of data no longer determines the decision.
      this.stays = {};
      this.#others = null;
    }
    this.#homes.set(node, engine);
  }

  /** Engines that were named. */
  get named(): readonly IEngine[] {
    return [...this.#named].filter((engine) => isUsable(stateOf(engine)));
  }

  others(): readonly EngineState[] {
    const current = getEngine();
    if (this.#others?.current !== current) {
      const { rules } = this;
      const engines = new Set(rules === null ? this.#named : [...this.#named, rules.cpu, ...rules.devices]);
      engines.delete(current);
      this.#others = { current, list: [...engines].map(stateOf) };
    }
    const { list } = this.#others;
    return list.every(isUsable) ? list : list.filter(isUsable);
  }

  /** The engine on which a node belongs; undefined if none. */
  homeOf(root: Node): IEngine | undefined {
    if (this.#named.size === 0) return undefined;
    const known = this.#homes.get(root);
    if (known !== undefined || root.storage !== null) return known;
    const order = numbered([root]);
    return this.#belonging(order)[root.index] === 1 ? (this.#placeOf(order, root) ?? undefined) : undefined;
  }

  /** The engine on which each node of an order belongs: nodes that were moved there, and what is computed from them. */
  #belonging(order: readonly (Node | undefined)[], count: number = order.length): Uint8Array {
    const belongs = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      const node = order[i]!;
      if (node.storage !== null) belongs[i] = this.#homes.has(node) ? 1 : 0;
      else if (node.op === 'to' || node.src.some((source) => belongs[source.index] === 1)) belongs[i] = 1;
    }
    return belongs;
  }

  #placeOf(order: readonly Node[], node: Node): IEngine | null {
    const { places } = this.#decide(order, new Set([node]), stateOf(getEngine()), false, 0, null);
    return places[node.index]?.engine ?? null;
  }

  engineOf(node: Node): IEngine | null {
    return this.#placeOf(numbered([node]), node);
  }

  likely(wanted: readonly Node[]): EngineState | null {
    const state = this.#guesses[slotOf(wanted)] ?? null;
    return state !== null && isUsable(state) && state.engine !== getEngine() ? state : null;
  }

  learn(wanted: readonly Node[], state: EngineState | null): void {
    if (state !== null) this.isAway = true;
    this.#guesses[slotOf(wanted)] = state;
  }

  isHere(
    state: EngineState,
    captured: CapturedGraph,
    wanted: readonly Node[],
    told: boolean,
    plan: Plan | undefined,
  ): boolean {
    const { key } = captured;
    if (this.rules !== null && key.placed !== true && this.#named.size === 0 && plan?.placed?.by === this.stays) {
      const kept = told ? (plan.placed as Stays).read : (plan.placed as Stays).flushed;
      if (kept?.here === state && kept.uses < kept.until) {
        kept.uses++;
        return true;
      }
    }
    if (key.placed === true) {
      key.placed = false;
      return false;
    }
    if (this.#named.size > 0 && !this.#belongsHere(state, captured)) return false;
    if (this.rules === null) return true;
    const kept = this.#keptFor(captured.nodes.slice(0, captured.count) as Node[], wanted, stateOf(getEngine()), told);
    const isElsewhere = (place: EngineState | null, i: number): boolean =>
      place !== null && place !== state && !isFree(captured.nodes[i]!);
    if (kept.decision.places.some(isElsewhere)) return false;
    if (plan !== undefined && this.#named.size === 0) this.#note(plan, kept, state, told);
    return true;
  }

  /** Notes in a plan that its work stays where it is. */
  #note(plan: Plan, kept: Kept, state: EngineState, told: boolean): void {
    kept.here = state;
    // Where nothing would be gained elsewhere, runs need not be counted.
    if (!told && kept.until === mostRuns && kept.paidFor === null) {
      plan.stays = this.stays;
      return;
    }
    if (plan.placed?.by !== this.stays) plan.placed = new Stays(this.stays);
    if (told) (plan.placed as Stays).read = kept;
    else (plan.placed as Stays).flushed = kept;
  }

  /** Leaves that belong on another engine want their users there. On an engine that is not the current one, all must belong. */
  #belongsHere(state: EngineState, captured: CapturedGraph): boolean {
    const isCurrent = state.engine === getEngine();
    let committed = false;
    for (let i = 0; i < captured.leaves.length; i++) {
      const home = this.#homes.get(captured.nodes[captured.leaves.data[i]!]!);
      if (home !== undefined && home !== state.engine && isUsable(stateOf(home))) return false;
      if (home !== undefined) committed = true;
      else if (!isCurrent && this.rules === null) return false;
    }
    if (!isCurrent && !committed && this.rules === null) return false;
    if (!committed) return true;
    const belongs = this.#belonging(captured.nodes, captured.count);
    for (let i = 0; i < captured.count; i++)
      if (belongs[i] === 1 && captured.nodes[i]!.storage === null) this.#homes.set(captured.nodes[i]!, state.engine);
    return true;
  }

  assign(
    order: readonly Node[],
    wanted: readonly Node[],
    current: EngineState,
    told: boolean,
  ): readonly (EngineState | null)[] {
    const { places } = this.#keptFor(order, wanted, current, told).decision;
    if (this.#named.size === 0) return places;
    const belongs = this.#belonging(order);
    for (const [i, node] of order.entries())
      if (belongs[i] === 1 && node.storage === null) this.#homes.set(node, places[i]!.engine);
    return places;
  }

  /** The decision for nodes, with its parts, for reports. */
  explain(wanted: readonly Node[]): Decision {
    return this.#decide(numbered(wanted), new Set(wanted), stateOf(getEngine()), false, 0, null);
  }

  #keptFor(order: readonly Node[], wanted: readonly Node[], current: EngineState, told: boolean): Kept {
    const key = this.#keyOf(order, wanted, told);
    const found = this.#kept.find(key);
    const first = wanted[0]?.id ?? null;
    const counts = (kept: Kept): boolean => (kept.paidFor === null ? kept.uses < kept.until : kept.paidFor === first);
    if (found !== undefined && counts(found)) {
      found.uses++;
      return found;
    }
    const fresh = found === undefined || found.paidFor !== null;
    const credit = fresh ? 0 : found.decision.gain * found.uses;
    const decision = this.#decide(order, new Set(wanted), current, told, credit, fresh ? null : found.seen);
    const uses = fresh ? 1 : found.uses + 1;
    // If waiting did not help, the next reconsideration comes later.
    const wait = fresh ? decision.runs : Math.max(decision.runs, 2 * found.uses);
    const seen = new Set<number>();
    for (const { storage } of order) if (storage !== null) seen.add(storage.buffer.id);
    const kept: Kept = {
      decision: withoutNodes(decision),
      here: null,
      uses,
      until: Math.min(uses + wait - 1, mostRuns),
      paidFor: decision.spent ? first : null,
      seen,
    };
    if (found === undefined) this.#kept.add(key, kept);
    else Object.assign(found, kept);
    return found ?? kept;
  }

  #decide(
    order: readonly Node[],
    wanted: ReadonlySet<Node>,
    current: EngineState,
    told: boolean,
    credit: number,
    seen: ReadonlySet<number> | null,
  ): Decision {
    const { rules } = this;
    const devices = (rules?.devices ?? []).map(stateOf).filter(isUsable);
    const cpu = rules === null ? current : stateOf(rules.cpu);
    const question: Question = {
      policy: rules === null ? null : devices.length === 0 ? 'forceCpu' : rules.policy,
      current,
      cpu,
      devices,
      thresholds: rules?.thresholds ?? this.#usual,
      wanted,
      told,
      homeOf: (node) => {
        const home = this.#homes.get(node);
        const state = home === undefined ? null : stateOf(home);
        return state !== null && isUsable(state) ? state : null;
      },
      engineOf: (place) => {
        const state = stateOf(place as IEngine);
        return isUsable(state) ? state : null;
      },
      credit,
      isKnown: (leaf) =>
        seen === null || leaf.op !== 'buffer' || leaf.storage === null || seen.has(leaf.storage.buffer.id),
    };
    return decide(order, question);
  }

  #numberOf(object: object): number {
    let number = this.#numbers.get(object);
    if (number === undefined) this.#numbers.set(object, (number = ++this.#count));
    return number;
  }

  /** Everything a decision depends on, as integers. */
  #keyOf(order: readonly Node[], wanted: readonly Node[], told: boolean): IntWriter {
    const key = this.#key;
    key.length = 0;
    key.reserve(64 + wanted.length);
    key.push(told ? 1 : 0);
    key.push(this.#numberOf(getEngine()));
    const pools = [stateOf(getEngine()), ...this.others()].map(({ pool }) => pool);
    for (const pool of pools) key.push(this.#numberOf(pool));
    for (const node of order) {
      const { src, shape, kind, storage } = node;
      key.reserve(shape.length * 10 + src.length + 80);
      key.push(kind | (dtypeInfo[node.dtype].id << 8) | (storage === null ? 0 : 1 << 16));
      key.list(shape);
      if (storage !== null) {
        key.push(viewSpan(shape, storage.view.strides));
        key.push(this.#numberOf((storage.buffer as PoolBuffer).pool));
        let there = 0;
        for (let i = 0; i < pools.length; i++) if (storageIn(node, pools[i]!) !== null) there |= 1 << (i & 31);
        key.push(there);
        const home = this.#homes.get(node);
        key.push(home === undefined ? 0 : this.#numberOf(home));
        continue;
      }
      const { encode } = definitionAt(kind);
      if (encode != null) (encode as (attr: unknown, out: IntWriter) => void)(node.attr, key);
      if (isOp(node, 'to')) key.push(this.#numberOf(node.attr.engine));
      if (isOp(node, 'loop')) key.push(this.#numberOf(node.attr.body));
      for (const source of src) key.push(source.index);
    }
    for (const node of wanted) key.push(node.index);
    return key;
  }

  refuses({ engine }: EngineState, node: Node): boolean {
    return this.#refused.get(engine)?.has(signatureOf(node)) === true;
  }

  takes(error: unknown, { engine }: EngineState): boolean {
    const { code, until } = (error ?? {}) as { code?: string; until?: unknown };
    return this.rules !== null && engine !== cpuEngine() && until === undefined && refusals.includes(code);
  }

  fallBack({ engine }: EngineState, reason: string, nodes: readonly Node[], error?: Error): void {
    const { rules } = this;
    if (rules === null) return;
    const what = nodes.map(({ op, dtype, shape }) => `'${op}' ${dtype} ${showShape(shape)}`).slice(0, 3);
    const work = `${what.join(', ')}${nodes.length > 3 ? ` and ${nodes.length - 3} more` : ''}`;
    if (rules.strict) {
      const text = `${work} cannot be computed on engine '${engine.name}': ${reason}; the context is strict: leave strict out, and the cpu engine computes it`;
      throw Object.assign(new UnsupportedError('placement', text), { cause: error });
    }
    if ((error as { code?: string } | undefined)?.code === 'COMPILE' && nodes.length === 1) {
      let known = this.#refused.get(engine);
      if (known === undefined) this.#refused.set(engine, (known = new Set()));
      if (known.size < mostReasons) known.add(signatureOf(nodes[0]!));
    }
    const { code } = (error ?? {}) as { code?: string };
    // Figures of memory differ each time.
    const kind = `${engine.name} ${code === 'OUT_OF_MEMORY' ? code : reason}`;
    if (this.#told.has(kind) || this.#told.size >= mostReasons) return;
    this.#told.add(kind);
    rules.logger?.(`[placement] the cpu engine computes ${work}: engine '${engine.name}' cannot, ${reason}`);
  }
}

const isUsable = ({ pool }: EngineState): boolean => pool.lost === null && !pool.disposed;

/** A slot in the table of guesses. Forms that share one are sometimes guessed wrongly, which only costs time. */
function slotOf(wanted: readonly Node[]): number {
  const { kind, shape } = wanted[0]!;
  let hash = Math.imul(wanted.length, 31) + kind;
  for (let axis = 0; axis < shape.length; axis++) hash = Math.imul(hash, 31) + shape[axis]!;
  return (hash ^ (hash >>> 8)) & (mostGuesses - 1);
}

function signatureOf({ op, dtype, shape, src }: Node): string {
  return [op, dtype, shape, ...src.map((source) => `${source.dtype} ${source.shape}`)].join(';');
}

/** The nodes below some roots, sources first, numbered by `index`. */
function numbered(roots: readonly Node[]): Node[] {
  const order = nodesBelow(roots);
  for (const [i, node] of order.entries()) node.index = i;
  return order;
}

/** A decision without its parts, because a kept one must hold no nodes. */
function withoutNodes({ parts, ...decision }: Decision): Decision {
  return { ...decision, parts: parts.map((part) => ({ ...part, nodes: [] })) };
}

/** The placer of the runtime in use; made on first use. */
export function placerInUse(): EnginePlacer {
  if (runs.placer instanceof EnginePlacer) return runs.placer;
  const placer = new EnginePlacer();
  runs.placer = placer;
  return placer;
}
