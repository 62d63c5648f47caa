/**
 * The policies, which decide the engine of each node. In: the nodes of a flush, sources first. Out: an engine for each, and the
 * parts that were decided together, with their costs and the reason.
 *
 * A part is a set of nodes that share work. The policy does not apply to nodes that belong on an engine (`to`, and what is computed from it).
 */
import { storageBytes, type PoolBuffer } from '../engine/pool.ts';
import { isOp, type Node } from '../graph/node.ts';
import { nodesBelow } from '../graph/print.ts';
import { definitionAt } from '../graph/definition.ts';
import { storageIn } from '../planner/capture/captured-graph.ts';
import { holds, isFree } from '../runtime/placement.ts';
import type { EngineState } from '../runtime/state.ts';
import { sizeOf } from '@polygrad/compiler/shape/view';
import {
  copyCost,
  crossingCost,
  type EngineCosts,
  kernelCost,
  familyOf,
  type OperationFamily,
  workOf,
} from './costs.ts';
import { FlowNetwork } from './min-cut.ts';
import type { AdaptiveThresholds } from './thresholds.ts';

/**
 * How engines are chosen. `automatic`: parts with an operation that reaches its family's threshold go where they are done sooner, transfers
 * included. `forceGpu`, `forceCpu`: all that the device, or the CPU engine, can do. `minimizeTransfers`: each part goes where most of its data
 * is. `costBased`: each operation goes where all of them together are done soonest.
 */
export type PlacementPolicy = 'automatic' | 'forceGpu' | 'forceCpu' | 'minimizeTransfers' | 'costBased';

export const policies: readonly PlacementPolicy[] = [
  'automatic',
  'forceGpu',
  'forceCpu',
  'minimizeTransfers',
  'costBased',
];

export function isPolicy(value: unknown): boolean {
  return (policies as readonly unknown[]).includes(value);
}

/** The input of a decision, besides the nodes. */
export interface Question {
  /** Null: work follows its data, and otherwise runs on the current engine. */
  readonly policy: PlacementPolicy | null;
  readonly current: EngineState;
  readonly cpu: EngineState;
  readonly devices: readonly EngineState[];
  readonly thresholds: AdaptiveThresholds;
  readonly wanted: ReadonlySet<Node>;
  /** True if the results will be read at once. */
  readonly told: boolean;
  /** The engine on which a node in memory belongs; null if it belongs nowhere. */
  readonly homeOf: (node: Node) => EngineState | null;
  /** The engine of a name or object given to `to`; null if it is gone. */
  readonly engineOf: (place: { readonly name: string }) => EngineState | null;
  /** Milliseconds that this work would have gained elsewhere so far: moving its data may cost as much. */
  readonly credit: number;
  /** True for a leaf that was present at an earlier decision. */
  readonly isKnown: (leaf: Node) => boolean;
}

/** Estimated milliseconds of a part on an engine. */
export interface PartCost {
  readonly compute: number;
  /** Transfers of missing data, and of results that are read. */
  readonly transfer: number;
}

/** Nodes that were decided together. */
export interface Part {
  readonly nodes: readonly Node[];
  /** The engine; for a divided part, the one with most work. */
  place: EngineState;
  readonly costs: ReadonlyMap<EngineState, PartCost>;
  readonly reason: string;
}

export interface Decision {
  /** The engine of each node by its position in the order; null for nodes in memory. */
  readonly places: readonly (EngineState | null)[];
  readonly parts: readonly Part[];
  /** Number of runs after which moving the data elsewhere would have paid. */
  readonly runs: number;
  /** Milliseconds that a run would save if its data were elsewhere. */
  readonly gain: number;
  /** True if data is moved on credit, which is then used up: the next move must earn it again. */
  readonly spent: boolean;
}

const short = (value: number): string =>
  value >= 1000 ? value.toExponential(1) : Number(value.toPrecision(3)).toString();

/** Bytes of a node's value on an engine. */
function bytesOf(node: Node, { engine }: EngineState): number {
  return sizeOf(node.shape) * storageBytes(engine, node.dtype);
}

function isThere(leaf: Node, { pool }: EngineState): boolean {
  return storageIn(leaf, pool) !== null;
}

/** Where the value of a leaf is. */
function placeOfLeaf(leaf: Node, { cpu, devices }: Question): EngineState | null {
  const { pool } = leaf.storage!.buffer as PoolBuffer;
  return [cpu, ...devices].find((state) => state.pool === pool) ?? null;
}

/** Decides for all nodes of an order, numbered by `index`. */
export function decide(order: readonly Node[], q: Question): Decision {
  const homes = homesOf(order, q);
  const places = order.map((node, i) => (node.storage !== null ? null : (homes[i] ?? q.current)));
  if (q.policy === null) return { places, parts: [], runs: Number.POSITIVE_INFINITY, gain: 0, spent: false };
  const forced = q.policy === 'forceCpu' ? q.cpu : q.policy === 'forceGpu' ? q.devices[0]! : null;
  const needsMemory = storedNodes(order, q);
  const parts: Part[] = [];
  let runs = Number.POSITIVE_INFINITY;
  let gain = 0;
  let spent = false;
  for (const nodes of partsOf(order, homes)) {
    const part = new PartEstimate(nodes, homes, needsMemory, q);
    const chosen =
      forced !== null
        ? { place: forced, reason: `the policy is ${q.policy}` }
        : q.policy === 'minimizeTransfers'
          ? part.nearest()
          : q.policy === 'automatic'
            ? part.automatic()
            : part.cheapest();
    const divided = q.policy === 'costBased' ? part.divide(places) : false;
    if (!divided) for (const node of nodes) places[node.index] = chosen.place;
    parts.push({
      nodes,
      place: chosen.place,
      costs: part.costs(),
      reason: divided ? 'divided: some of it is done sooner elsewhere, transfers counted' : chosen.reason,
    });
    if (forced !== null || q.policy === 'minimizeTransfers') continue;
    if (q.credit > 0) spent ||= divided || part.moves(chosen.place);
    if (divided) continue;
    const regret = part.regret(chosen.place);
    gain += regret.gain;
    runs = Math.min(runs, regret.runs);
  }
  return { places, parts, runs, gain, spent };
}

/** The engines on which nodes belong: those that `to` names, and those of the data that most of a node is computed from. */
function homesOf(order: readonly Node[], q: Question): (EngineState | null)[] {
  const homes = new Array<EngineState | null>(order.length).fill(null);
  for (const [i, node] of order.entries()) {
    if (node.storage !== null) homes[i] = q.homeOf(node);
    else if (isOp(node, 'to')) homes[i] = q.engineOf(node.attr.engine);
    else {
      const votes = new Map<EngineState, number>();
      for (const source of node.src) {
        const home = homes[source.index];
        if (home != null) votes.set(home, (votes.get(home) ?? 0) + bytesOf(source, home) + 1);
      }
      let most = 0;
      for (const [home, bytes] of votes)
        if (bytes > most) {
          most = bytes;
          homes[i] = home;
        }
    }
  }
  return homes;
}

/** Nodes that are not fused into another node's kernel. */
function storedNodes(order: readonly Node[], { wanted }: Question): Uint8Array {
  const stored = new Uint8Array(order.length);
  for (let i = order.length - 1; i >= 0; i--) {
    const node = order[i]!;
    if (node.storage !== null) continue;
    if (wanted.has(node)) stored[i] = 1;
    const { role } = definitionAt(node.kind);
    const reads = role === 'contraction' || role === 'program' || role === 'loop' || role === 'gather';
    const passes = (role === 'movement' || role === 'pass') && stored[i] === 1;
    if (reads || passes) for (const source of node.src) stored[source.index] = 1;
  }
  return stored;
}

/** Nodes to be placed, in parts that share no work. */
function partsOf(order: readonly Node[], homes: readonly (EngineState | null)[]): Node[][] {
  const parent = order.map((_, i) => i);
  const top = (i: number): number => {
    let at = i;
    while (parent[at] !== at) at = parent[at] = parent[parent[at]!]!;
    return at;
  };
  const isOpen = (node: Node): boolean => node.storage === null && !isFree(node) && homes[node.index] === null;
  for (const node of order) {
    if (!isOpen(node)) continue;
    for (const source of node.src) if (isOpen(source)) parent[top(source.index)] = top(node.index);
  }
  const parts = new Map<number, Node[]>();
  for (const node of order) {
    if (!isOpen(node)) continue;
    const part = parts.get(top(node.index));
    if (part === undefined) parts.set(top(node.index), [node]);
    else part.push(node);
  }
  return [...parts.values()];
}

interface Choice {
  readonly place: EngineState;
  readonly reason: string;
}

/** A part, and the estimates by which policies choose its engine. */
class PartEstimate {
  readonly #nodes: readonly Node[];
  readonly #homes: readonly (EngineState | null)[];
  readonly #stored: Uint8Array;
  readonly #q: Question;
  /** What the part reads and does not compute. */
  readonly #outside: Set<Node> = new Set();
  readonly #engines: readonly EngineState[];
  readonly #compute: Map<EngineState, number> = new Map();

  constructor(nodes: readonly Node[], homes: readonly (EngineState | null)[], stored: Uint8Array, q: Question) {
    this.#nodes = nodes;
    this.#homes = homes;
    this.#stored = stored;
    this.#q = q;
    this.#engines = [q.cpu, ...q.devices];
    for (const { src } of nodes)
      for (const source of src) if (source.storage !== null || homes[source.index] !== null) this.#outside.add(source);
  }

  #costsOf(state: EngineState): EngineCosts {
    const { cpu, device } = this.#q.thresholds.costs;
    return state === this.#q.cpu ? cpu : device;
  }

  #kernel(node: Node, state: EngineState): number {
    if (!holds(state.engine, node)) return never;
    const costs = this.#costsOf(state);
    if (isOp(node, 'loop')) return node.attr.length * bodyCost(node, costs);
    const family = familyOf(node);
    if (family === null) return 0;
    const work = workOf(node);
    if (family === 'elementwise' && this.#stored[node.index] === 0) return costs.fused * work;
    return kernelCost(costs.families[family], work);
  }

  #work(state: EngineState): number {
    let sum = this.#compute.get(state);
    if (sum === undefined) {
      sum = 0;
      for (const node of this.#nodes) sum += this.#kernel(node, state);
      this.#compute.set(state, sum);
    }
    return sum;
  }

  #fetch(node: Node, state: EngineState): number {
    if (node.storage !== null && isThere(node, state)) return 0;
    const from = node.storage !== null ? placeOfLeaf(node, this.#q) : (this.#homes[node.index] ?? null);
    if (from === state) return 0;
    return crossingCost(this.#costsOf(from ?? this.#q.cpu), this.#costsOf(state), bytesOf(node, state));
  }

  /** Milliseconds to bring missing data: data that stays there from then on, and data that is new in each run. */
  #bring(state: EngineState): { readonly known: number; readonly fresh: number } {
    let [known, fresh] = [0, 0];
    for (const node of this.#outside) {
      const cost = this.#fetch(node, state);
      if (this.#q.isKnown(node)) known += cost;
      else fresh += cost;
    }
    return { known, fresh };
  }

  /** True if data that stays would be moved there. */
  moves(state: EngineState): boolean {
    return this.#bring(state).known > 0;
  }

  #give(state: EngineState): number {
    if (!this.#q.told) return 0;
    const { download } = this.#costsOf(state);
    let sum = 0;
    for (const node of this.#nodes) if (this.#q.wanted.has(node)) sum += copyCost(download, bytesOf(node, state));
    return sum;
  }

  #total(state: EngineState): number {
    const { known, fresh } = this.#bring(state);
    return this.#work(state) + Math.max(0, known - this.#q.credit) + fresh + this.#give(state);
  }

  costs(): ReadonlyMap<EngineState, PartCost> {
    return new Map(
      this.#engines.map((state) => {
        const { known, fresh } = this.#bring(state);
        return [state, { compute: this.#work(state), transfer: known + fresh + this.#give(state) }];
      }),
    );
  }

  /** The engine where it is done soonest; the CPU engine if that is about as good. */
  cheapest(): Choice {
    let place = this.#q.cpu;
    let least = this.#total(place);
    let bound = least * (1 - doubt);
    for (const state of this.#q.devices) {
      const total = this.#total(state);
      if (total < bound) [place, least, bound] = [state, total, total];
    }
    return { place, reason: `done soonest, transfers counted: ${short(least)} ms` };
  }

  /** The engine with most of its data. */
  nearest(): Choice {
    let place = this.#q.current;
    let most = this.#bytesIn(place);
    for (const state of this.#engines) {
      const bytes = this.#bytesIn(state);
      if (bytes > most) [place, most] = [state, bytes];
    }
    return { place, reason: most === 0 ? 'it reads no data' : `${short(most)} bytes of its data are there` };
  }

  #bytesIn(state: EngineState): number {
    let bytes = 0;
    for (const node of this.#outside)
      if (node.storage !== null ? isThere(node, state) : this.#homes[node.index] === state)
        bytes += bytesOf(node, state);
    return bytes;
  }

  automatic(): Choice {
    const { cpu, thresholds } = this.#q;
    const reached = this.#largest((family, work) => work / thresholds.get(family));
    const isReached = reached !== null && reached.share >= 1;
    const text =
      reached === null
        ? 'it has no work'
        : `${reached.family} of ${short(reached.work)} is ${isReached ? 'at least' : 'below'} the threshold ${short(thresholds.get(reached.family))}`;
    const isHere = [...this.#outside].every((node) =>
      node.storage !== null ? isThere(node, cpu) : this.#homes[node.index] === cpu,
    );
    if (!isReached && isHere) return { place: cpu, reason: text };
    const choice = this.cheapest();
    if (choice.place !== cpu) return { place: choice.place, reason: `${text}; ${choice.reason}` };
    return { place: cpu, reason: `${text}; ${isReached ? 'its transfers cost more than it gains' : choice.reason}` };
  }

  /** The operation nearest to its threshold, or furthest beyond it. */
  #largest(
    shareOf: (family: OperationFamily, work: number) => number,
  ): { family: OperationFamily; work: number; share: number } | null {
    let best: { family: OperationFamily; work: number; share: number } | null = null;
    const look = (node: Node): void => {
      const family = familyOf(node);
      if (family === null) return;
      const work = workOf(node);
      const share = shareOf(family, work);
      if (best === null || share > best.share) best = { family, work, share };
    };
    for (const node of this.#nodes) {
      if (isOp(node, 'loop')) nodesBelow(node.attr.body.next).forEach(look);
      else look(node);
    }
    return best;
  }

  /** Milliseconds that a run would save elsewhere if its data were there, and the number of runs after which moving the data pays. */
  regret(chosen: EngineState): { readonly gain: number; readonly runs: number } {
    const own = this.#work(chosen) + this.#bring(chosen).fresh + this.#give(chosen);
    let best = { gain: 0, runs: Number.POSITIVE_INFINITY };
    if (this.#q.policy === 'automatic') {
      const reached = this.#largest((family, work) => work / this.#q.thresholds.get(family));
      if (chosen === this.#q.cpu && (reached === null || reached.share < 1)) return best;
    }
    for (const state of this.#engines) {
      if (state === chosen) continue;
      const { known, fresh } = this.#bring(state);
      const gain = own - this.#work(state) - fresh - this.#give(state);
      if (gain > Math.max(best.gain, doubt * own)) best = { gain, runs: Math.max(1, Math.ceil(known / gain)) };
    }
    return best;
  }

  /** Divides the part between the CPU engine and the device so that it is done soonest; false if one engine is better for all of it. */
  divide(places: (EngineState | null)[]): boolean {
    const { cpu, devices, wanted, told } = this.#q;
    if (this.#nodes.length < 2 || this.#nodes.length > mostDivided || devices.length === 0) return false;
    const device = devices.reduce((a, b) => (this.#total(b) < this.#total(a) ? b : a));
    const [onCpu, onDevice] = [this.#costsOf(cpu), this.#costsOf(device)];
    // The source's side of the cut is the CPU engine.
    const net = new FlowNetwork();
    const vertex = new Map<Node, number>();
    const users = new Map<Node, Node[]>();
    for (const node of this.#nodes) {
      vertex.set(node, net.vertex());
      for (const source of node.src) {
        const list = users.get(source);
        if (list === undefined) users.set(source, [node]);
        else list.push(node);
      }
    }
    for (const node of this.#nodes) {
      const v = vertex.get(node)!;
      const bytes = bytesOf(node, device);
      const read = told && wanted.has(node);
      net.edge(v, 1, this.#kernel(node, cpu) + (read ? copyCost(onCpu.download, bytes) : 0));
      net.edge(0, v, this.#kernel(node, device) + (read ? copyCost(onDevice.download, bytes) : 0));
    }
    const cross = (from: number, to: readonly Node[], cost: number, back: boolean): void => {
      if (cost === 0 || to.length === 0) return;
      const between = net.vertex();
      net.edge(back ? between : from, back ? from : between, cost);
      for (const user of to) {
        const v = vertex.get(user)!;
        net.edge(back ? v : between, back ? between : v, never);
      }
    };
    for (const [node, all] of users) {
      const list = all.filter((user) => vertex.has(user));
      const own = vertex.get(node);
      const bytes = bytesOf(node, device);
      if (own !== undefined) {
        cross(own, list, crossingCost(onCpu, onDevice, bytes), false);
        cross(own, list, crossingCost(onDevice, onCpu, bytes), true);
      } else if (this.#outside.has(node)) {
        cross(0, list, this.#amortised(node, device), false);
        cross(1, list, this.#amortised(node, cpu), true);
      }
    }
    const side = net.cut();
    const here = this.#nodes.filter((node) => side[vertex.get(node)!]);
    const moved = here.length > 0 && here.length < this.#nodes.length;
    // If only index maps would move to the other engine, the part is not divided.
    const works = (nodes: readonly Node[]): boolean => nodes.some((node) => this.#kernel(node, cpu) > 0);
    if (!moved || !works(here) || !works(this.#nodes.filter((node) => !side[vertex.get(node)!]))) return false;
    for (const node of this.#nodes) places[node.index] = side[vertex.get(node)!] ? cpu : device;
    return true;
  }

  #amortised(node: Node, state: EngineState): number {
    const cost = this.#fetch(node, state);
    return this.#q.isKnown(node) ? Math.max(0, cost - this.#q.credit) : cost;
  }
}

/** Costs that differ by less than this fraction count as equal, because measurements are no more accurate. */
const doubt = 0.03;

/** Milliseconds assigned to work that an engine cannot do. */
export const never = 1e15;

/** Parts with more nodes are not divided. */
const mostDivided = 1024;

/** A step of a loop: its larger operations each, and one kernel for all elementwise work. */
function bodyCost(node: Node<'loop'>, { families }: EngineCosts): number {
  let sum = 0;
  let elementwise = 0;
  for (const each of nodesBelow(node.attr.body.next)) {
    const family = each.storage === null ? familyOf(each) : null;
    if (family === 'elementwise') elementwise = Math.max(elementwise, workOf(each));
    else if (family !== null) sum += kernelCost(families[family], workOf(each));
  }
  return sum + (elementwise > 0 ? kernelCost(families.elementwise, elementwise) : 0);
}
