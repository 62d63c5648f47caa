/**
 * What changes while a program records: the graph's part of a runtime (runtime/runtime.ts). Scopes, tapes and what is pending are in it;
 * what is assigned is in the log of transactions.ts.
 *
 * The functions of this room work on `graph`, the part in use. Numbers that are only unique (`nextMark`, ids of buffers) are not in it, nor is
 * what is known of one object by its identity.
 */
import { release, type Node } from './node.ts';
import type { Observer } from './observer.ts';
import type { RunningOnPlaceholders } from './placeholder.ts';
import type { TrackedHandle } from './recorder.ts';
import type { Recording, ScopedResource } from './scope.ts';

/** What may wait where nobody says otherwise. */
export interface PendingLimits {
  readonly nodes: number;
  /** Null: what the engine has room for. */
  readonly bytes: number | null;
}

export const usualLimits: PendingLimits = { nodes: 4096, bytes: null };

/** Bytes of results that may wait on every engine: the engine is not asked before. */
export const leastBytes: number = 64 * 2 ** 20;

/** What an operation takes in the place of an operand of its caller's (precision/). */
export type Casting = (node: Node) => Node;

export class GraphState {
  /** Id of the node recorded last. */
  newest: number = 0;

  // What waits for a flush: recorder.ts.

  /** Handles recorded since the last global flush. Strong references until then. May contain disposed ones. */
  readonly pending: TrackedHandle[] = [];
  pendingNodes: number = 0;
  pendingBytes: number = 0;
  /** How much may wait. A negative number of nodes: nothing, and that number where `setEager` is off again. */
  limits: PendingLimits = usualLimits;
  /** How many bytes may wait before it is looked up how many may: with what users and engines say, the limit itself. */
  mostBytes: number = leastBytes;
  /** Bytes of results that may wait for the engine in use. The runtime's. */
  engineLimit: () => number = () => leastBytes;
  /** Global flushes so far. */
  epoch: number = 0;
  /** Tensors that exist and are not disposed. */
  live: number = 0;
  /** Survivors of the last flush that are not watched yet: watching is dear, and most handles are disposed soon. */
  readonly young: TrackedHandle[] = [];
  watching: boolean = false;
  /** Backstop for Tensors that nobody disposed: gives a handle's count back when JavaScript collects the handle. */
  readonly backstop: FinalizationRegistry<Node> = new FinalizationRegistry((node) => {
    this.live--;
    release(node);
  });
  /**
   * Computes what is pending: at the end of the outermost user scope, or because too much is (`atLimit`). Never called inside an operation.
   * The runtime's.
   */
  flush: (atLimit: boolean) => void = () => undefined;

  // Scopes: scope.ts.

  /** What scopes will end, innermost last. */
  readonly stack: ScopedResource[] = [];
  /** Scopes of all kinds that are open. */
  depth: number = 0;
  /** Scopes of users that are open. */
  userDepth: number = 0;
  /** Library operations in progress, one inside the other: numbers are the library's own and errors carry the outermost name. */
  composing: number = 0;
  /** Above zero no flush may start: nodes exist that no handle holds yet, or a graph should stay in one piece. */
  holding: number = 0;
  /** What the outermost scope of a user, or an operation outside of scopes, hands on until the flush at its end has gone well. */
  readonly outlived: ScopedResource[] = [];
  /** Name of the operation in progress. */
  label: string = '';
  /** Id of the node recorded last when the operation in progress began: operands up to there are its caller's. */
  begun: number = 0;
  /** Mixed precision, if there is. */
  casting: Casting | null = null;
  /** While a function is run on placeholders (placeholder.ts): what is computed on the host now is the same for all of them. */
  placeholders: RunningOnPlaceholders | null = null;
  /** Throws OperationError if a node is a placeholder. Null as long as there was none. */
  refusePlaceholder: ((node: Node) => void) | null = null;
  /** Told of what a compiled function does while it is recorded (replay/). */
  observer: Observer | undefined = undefined;

  // What is differentiated: scope.ts.

  /** False inside noGrad and inside gradient functions that do not build a graph for requiresGrad leaves. */
  leaves: boolean = true;
  /** Bits of tapes that record now. */
  recording: number = 0;
  /** Bits among them of tapes that watch every requiresGrad leaf by themselves. */
  watchingLeaves: number = 0;
  /** Bits of tapes that exist. */
  taken: number = 0;
  /** Tapes by the places of their bits. */
  readonly recordings: (Recording | null)[] = [];
  /** Told of every node that has a tracked source. */
  collector: ((node: Node) => void) | null = null;

  // Random keys: where the generator stands (tensor/random-key.ts).

  root: readonly [number, number] = [0, 0];
  calls: number = 0;
}

/** The part in use. */
export let graph: GraphState = new GraphState();

/** Another part takes its place. */
export function useGraph(next: GraphState): void {
  graph = next;
}
