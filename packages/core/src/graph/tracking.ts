/**
 * What is being differentiated right now: whether requiresGrad propagates, and which tapes record.
 *
 * A tape or gradient function that is active owns one bit. A node gets the bits of its sources (as far as those tapes are
 * still recording) and goes on the list of every tape whose bit it has; creation order makes each list topological.
 */
import { isFloat } from '../shape/dtype.ts';
import { ArgumentError } from '../shape/errors.ts';
import { type Node, forgetHistory } from './node.ts';
import { type GraphState, graph } from './state.ts';
import { say } from '../shape/shown.ts';

/** One recording. `nodes` are the recorded nodes in creation order; `watched` those named by the user. */
export interface Recording {
  readonly op: string;
  /** Where it records. */
  readonly graph: GraphState;
  readonly bit: number;
  readonly nodes: Node[];
  readonly watched: Node[];
  /** What can be asked for the recording; null: a function that is running. */
  readonly owner: RecordingOwner | null;
}

/** Who has a recording, for messages. It must not keep alive what it tells of. */
export interface RecordingOwner {
  /** Where it was made; null where nobody can end it any more. */
  origin(): string | null;
}

/** Tapes that may exist: one bit each, and none for the sign. */
const mostRecordings = 31;
const allBits = 2 ** mostRecordings - 1;

/** Recordings that exist. */
export function openRecordings(): number {
  return graph.recordings.reduce((count, r) => (r === null ? count : count + 1), 0);
}

/** True while any tape or gradient function exists: a flush now would cut its graph in two. */
export function hasRecordings(): boolean {
  return graph.taken !== 0;
}

/** Starts a recording. `watchLeaves`: it also follows everything that comes from requiresGrad leaves. */
export function startRecording(op: string, watchLeaves: boolean, owner: RecordingOwner | null = null): Recording {
  const g = graph;
  const { recordings } = g;
  // What was collected, but not told of yet, has its place no longer.
  if (g.taken === allBits) for (const r of recordings) if (r?.owner?.origin() === null) endRecording(r);
  for (let i = 0; i < mostRecordings; i++) {
    const bit = 1 << i;
    if ((g.taken & bit) !== 0) continue;
    g.taken |= bit;
    g.recording |= bit;
    if (watchLeaves) g.watchingLeaves |= bit;
    return (recordings[i] = { op, graph: g, bit, nodes: [], watched: [], owner });
  }
  const open = new Map<string, number>();
  for (const { op: by, owner: made } of recordings as Recording[]) {
    const line = `${by}, ${made === null ? 'running' : `made ${made.origin()}`}`;
    open.set(line, (open.get(line) ?? 0) + 1);
  }
  const list = Array.from(open, ([line, count]) => `\n  ${count === 1 ? '' : `${count} times `}${line}`);
  throw new ArgumentError(
    op,
    say`too many tapes are open: ${mostRecordings}; end those no longer needed by gradient(), dispose() or 'using'. Open are:${list.join('')}`,
  );
}

/** The recording sees operations on this node from now on. */
export function watchNode(recordingOf: Recording, node: Node): void {
  if ((node.pins & recordingOf.bit) !== 0) return;
  node.pins |= recordingOf.bit;
  recordingOf.watched.push(node);
}

/** New nodes are no longer recorded; what was recorded stays. */
export function pauseRecording({ bit }: Recording): void {
  graph.recording &= ~bit;
}

/** Recording goes on after a pause. */
export function resumeRecording({ bit }: Recording): void {
  graph.recording |= bit & graph.taken;
}

/** Ends a recording, once: its nodes keep their history only if something else needs it. */
export function endRecording(ended: Recording): void {
  // A tape that JavaScript forgot may end while another runtime is in use.
  const { bit, nodes, watched, graph: g } = ended;
  const at = 31 - Math.clz32(bit);
  if (g.recordings[at] !== ended) return;
  g.recording &= ~bit;
  g.watchingLeaves &= ~bit;
  g.taken &= ~bit;
  g.recordings[at] = null;
  for (const node of watched) {
    node.pins &= ~bit;
    forgetHistory(node);
  }
  // Latest first, so that a chain nobody needs goes link by link.
  for (let i = nodes.length - 1; i >= 0; i--) {
    const node = nodes[i]!;
    node.pins &= ~bit;
    forgetHistory(node);
  }
  nodes.length = 0;
  watched.length = 0;
}

/** Called by makeNode for a node some source of which is tracked. */
export function track(node: Node, fromLeaf: boolean, pins: number): void {
  if (!isFloat(node.dtype)) return;
  const g = graph;
  if (g.collector !== null) g.collector(node);
  let bits = pins & g.recording;
  if (fromLeaf) bits |= g.watchingLeaves & g.recording;
  node.requiresGrad = fromLeaf && g.leaves;
  node.pins = bits;
  while (bits !== 0) {
    const index = 31 - Math.clz32(bits);
    g.recordings[index]!.nodes.push(node);
    bits &= ~(1 << index);
  }
}

/** Runs a function and tells of every node it records that has a tracked source, whether or not the node is tracked itself. */
export function collecting<T>(tell: (node: Node) => void, body: () => T): T {
  const outer = graph.collector;
  graph.collector = tell;
  try {
    return body();
  } finally {
    graph.collector = outer;
  }
}

/** State of tracking, to be put back with `restoreTracking`. */
export interface TrackingState {
  readonly leaves: boolean;
  readonly recording: number;
}

/** Turns requiresGrad propagation off, and all recordings but `keep` too. */
export function suspendTracking(keep: 'recordings' | 'nothing'): TrackingState {
  const { leaves, recording } = graph;
  const state = { leaves, recording };
  graph.leaves = false;
  if (keep === 'nothing') graph.recording = 0;
  return state;
}

/** Puts the state before a suspension back; recordings that ended meanwhile stay ended. */
export function restoreTracking(state: TrackingState): void {
  graph.leaves = state.leaves;
  graph.recording = state.recording & graph.taken;
}
