/**
 * State that changes while a program records, as one object: the graph's part of a runtime (runtime/runtime.ts). It has scopes, tapes and pending
 * handles; assignments are in the log of transactions.ts.
 *
 * The functions of this room work on `graph`, the part in use. Left out are counters that only need to be unique (`nextMark`, ids of buffers) and
 * WeakMaps of facts about single objects: those are right for all runtimes.
 */
import type { TypedArray } from '@polygrad/compiler/shape/dtype';
import type { Live, Node, StorageBuffer, TrackedHandle } from './node.ts';

/** Limits of pending work: a flush starts where one is reached. */
export interface PendingLimits {
  readonly nodes: number;
  /** Null: a fraction of the engine's memory. */
  readonly bytes: number | null;
}

/** The limits by default. */
export const usualLimits: PendingLimits = { nodes: 4096, bytes: null };

/** Bytes of results that may be pending on every engine; below that the engine is not asked. */
export const leastBytes: number = 64 * 2 ** 20;

/** Replaces the operands of a user's operation: a cast, in mixed precision (precision/). */
export type Casting = (node: Node) => Node;

/** What a scope can end: handles and tapes. `kept` ones and those with the exit's `stamp` survive. */
export interface ScopedResource {
  readonly disposed: boolean;
  readonly kept: boolean;
  readonly stamp: number;
  dispose(): void;
}

/** One recording. `nodes` are the recorded nodes in creation order; `watched` those the user named. */
export interface Recording {
  readonly op: string;
  /** The graph in which it records. */
  readonly graph: GraphState;
  readonly bit: number;
  readonly nodes: Node[];
  readonly watched: Node[];
  /** What may ask for the recording later; null for a running function. */
  readonly owner: RecordingOwner | null;
}

/** The owner of a recording, for messages. It must not keep that alive. */
export interface RecordingOwner {
  /** Where it was made; null if it was garbage collected. */
  origin(): string | null;
}

/** The functions that run on placeholders now, and what they may not do with them (placeholder.ts). */
export interface RunningOnPlaceholders {
  /** For each function: the size of the scope stack when it began. */
  readonly open: number[];
  /** The node that a new tensor names: a constant where nothing is tracked (`noGrad`). */
  tracked(node: Node): Node;
  /** Throws OperationError if a value to be kept depends on a placeholder. */
  checkKeep(value: Node): void;
  /**
   * Throws OperationError if a value to be assigned depends on a placeholder of a running function, and the handle was made outside of
   * it. It would name something that no longer exists when the function has returned.
   */
  checkAssign(handle: TrackedHandle, value: Node): void;
}

/** The least and the greatest of the integers in a tensor (known-range.ts); NaN where they are not known. A tensor and its views share one object. */
export type KnownRange = readonly [least: number, greatest: number];

/** Receives the events of a compiled function that is being recorded (replay/). */
export interface Observer {
  /** A tensor was made. */
  made(handle: TrackedHandle): void;
  /** A tensor is about to be assigned, or becomes a leaf of gradients. */
  assign(handle: TrackedHandle): void;
  disposed(handle: TrackedHandle): void;
  /** Host data has become a leaf. */
  upload(leaf: Node, data: TypedArray): void;
  /** A generated key is split into several. */
  split(key: readonly number[], parts: readonly (readonly number[])[]): void;
  /** Nodes are the two words of a random key. */
  words(nodes: readonly Node[], key: readonly number[]): void;
  /** A node is a number that is read at every call. */
  number(node: Node, read: () => number): void;
  /** `hostValue` was called, and its value now. */
  value(read: () => unknown, value: unknown): void;
  /** `hostEffect` was called. */
  effect(run: () => void, undo: (() => void) | undefined): void;
  /** Integers were checked to lie from `least` to `most`, as far as the host knows theirs. */
  within(range: KnownRange, least: number, most: number): void;
  /** A buffer is allocated. */
  alloc(buffer: StorageBuffer): void;
  /** A plan is about to run for a captured subgraph: the `CapturedGraph` of planner/capture/captured-graph.ts. */
  plan(plan: unknown, captured: unknown): void;
}

export class GraphState {
  /** Id of the node recorded last. */
  newest: number = 0;

  // Pending work: recorder.ts.

  /** Handles recorded since the last global flush. Strong references until then. May contain disposed ones. */
  pending: TrackedHandle[] = [];
  pendingNodes: number = 0;
  pendingBytes: number = 0;
  /** Limits of pending work. A negative number of nodes: none may wait, and its absolute value applies when `setEager` is off again. */
  limits: PendingLimits = usualLimits;
  /** Pending bytes at which the limit is looked up; once looked up, the limit itself. */
  mostBytes: number = leastBytes;
  /** Bytes of results that may be pending on the current engine; set by the runtime. */
  engineLimit: () => number = () => leastBytes;
  /** Global flushes so far. */
  epoch: number = 0;
  /** How many Tensors exist and are not disposed. An object of its own: the backstop names it, and must not keep the graph alive. */
  readonly live: Live = { tensors: 0 };
  /**
   * Handles of the last flush that are not watched yet: watching is expensive, and most are disposed soon. May contain disposed ones, and some that are
   * watched.
   */
  young: TrackedHandle[] = [];
  watching: boolean = false;
  /**
   * Computes what is pending: at the end of the outermost user scope, or because too much is (`atLimit`). Never called inside an operation.
   * Set by the runtime.
   */
  flush: (atLimit: boolean) => void = () => undefined;

  // Scopes: scope.ts.

  /** Resources that scopes will end, innermost last. */
  readonly stack: ScopedResource[] = [];
  /** Open scopes of all kinds. */
  depth: number = 0;
  /** Open scopes of users. */
  userDepth: number = 0;
  /** Nested library operations: numbers are the library's own and errors carry the outermost name. */
  composing: number = 0;
  /** Above zero no flush may start: nodes exist that no handle holds yet, or a graph should stay in one piece. */
  holding: number = 0;
  /** Results of the outermost user scope, or of an operation outside of scopes, until the flush at its end has succeeded. */
  readonly outlived: ScopedResource[] = [];
  /** Name of the current operation. */
  label: string = '';
  /** Id of the newest node when the current operation began: operands up to it belong to the caller. */
  begun: number = 0;
  /** What `autocast` does to operands now; null outside of it. */
  casting: Casting | null = null;
  /** Set while functions run on placeholders (placeholder.ts): what they compute on the host is the same for all examples. */
  placeholders: RunningOnPlaceholders | null = null;
  /** Throws OperationError if a node is a placeholder. Null until the first placeholder is made. */
  refusePlaceholder: ((node: Node) => void) | null = null;
  /** Receives the events of a compiled function while it is recorded (replay/). */
  observer: Observer | undefined = undefined;
  /** Throws where a value is read; set while a compiled function runs, recorded or not. */
  refuseRead: (() => void) | null = null;
  /**
   * Hears of every tensor that is an operand, for checkpoints and for a compiled function that is recorded. It may name a node that stands in for
   * that of the tensor.
   */
  operand: ((handle: TrackedHandle) => Node | null) | null = null;

  // Differentiation: scope.ts.

  /** False inside noGrad and inside gradient functions that do not build a graph for requiresGrad leaves. */
  leaves: boolean = true;
  /** Bits of tapes that record now. */
  recording: number = 0;
  /** Bits of those tapes that watch every requiresGrad leaf by themselves. */
  watchingLeaves: number = 0;
  /** Bits of tapes that exist. */
  taken: number = 0;
  /** Tapes by the position of their bit. */
  readonly recordings: (Recording | null)[] = [];
  /** Called for every float node that has a tracked source; set by `collecting`. */
  collector: ((node: Node) => void) | null = null;

  // Random keys: the position of the generator (tensor/random-key.ts).

  root: readonly [number, number] = [0, 0];
  calls: number = 0;
}

/** The part in use. */
export let graph: GraphState = new GraphState();

/** Replaces the part in use. */
export function useGraph(next: GraphState): void {
  graph = next;
}
