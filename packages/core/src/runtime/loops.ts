/**
 * Runs of graphs that contain loops: first what a loop reads, then its steps, then what reads its results.
 *
 * In: nodes to be realised, with loops below them. A run is cut into stages at its loops, and each stage is an ordinary run.
 * Values that a later stage needs are kept if they are expensive, and recomputed if they are cheap. loop-run.ts runs one loop.
 */
import { definitionAt } from '../graph/definition.ts';
import { dropUse, holdUse, isOp, type Node, realise } from '../graph/node.ts';
import type { CaptureOptions } from '../planner/capture/captured-graph.ts';
import { expandView, permuteView, reshapeView, type Shape, sliceView, type View } from '@polygrad/compiler/shape/view';
import { type Loop, runLoop } from './loop-run.ts';
import { type EngineState, runs } from './state.ts';
import { prepare } from './runtime.ts';
import { type Patience, run } from './run.ts';

/** True if the node costs too much to compute in two stages. */
function isExpensive(node: Node): boolean {
  const { role } = definitionAt(node.kind);
  return (
    role === 'contraction' || role === 'reduce' || role === 'program' || role === 'gather' || node.op === 'randomBits'
  );
}

interface Stages {
  /** What each stage computes, and the loops that run after it. */
  readonly wanted: readonly Node[][];
  readonly loops: readonly Loop[][];
}

/** Cuts a run at its loops; `nodes` are all that it needs, sources first. */
function stagesOf(nodes: readonly Node[], wanted: readonly Node[]): Stages {
  const stage = new Map<Node, number>();
  let count = 1;
  for (const node of nodes) {
    let at = 0;
    if (node.storage === null) for (const source of node.src) at = Math.max(at, stage.get(source) ?? 0);
    if (node.op === 'loopOutput') at++;
    stage.set(node, at);
    count = Math.max(count, at + 1);
  }
  const result: Stages = {
    wanted: Array.from({ length: count }, () => []),
    loops: Array.from({ length: count }, () => []),
  };
  const asked = new Set(wanted);
  /** The last stage that reads each node. */
  const last = new Map<Node, number>();
  const use = (node: Node, at: number): void => {
    if ((last.get(node) ?? -1) < at) last.set(node, at);
  };
  for (let i = nodes.length - 1; i >= 0; i--) {
    const node = nodes[i]!;
    if (node.storage !== null) continue;
    const at = stage.get(node)!;
    if (isOp(node, 'loop')) {
      result.loops[at]!.unshift(node);
      for (const source of node.src) {
        asked.add(source);
        use(source, at);
      }
    } else if (!isOp(node, 'loopOutput')) {
      const until = last.get(node) ?? at;
      const kept = asked.has(node) || (until > at && isExpensive(node));
      if (kept) result.wanted[at]!.push(node);
      for (const source of node.src) use(source, kept ? at : until);
    }
  }
  return result;
}

/** Runs nodes with loops among them. If a part must wait, the work before it is kept. */
export function runLoops(
  state: EngineState,
  wanted: readonly Node[],
  options: CaptureOptions,
  patience?: Patience,
  told?: boolean,
): boolean | Promise<void> | null {
  const { captured } = runs;
  captured.key.looped = false;
  const nodes = captured.nodes.slice(0, captured.count) as Node[];
  captured.clear();
  const { wanted: parts, loops } = stagesOf(nodes, wanted);
  const dry = patience === undefined;
  const kept = dry ? new Rehearsed(nodes) : null;
  try {
    for (const [at, part] of parts.entries()) {
      const last = at === parts.length - 1;
      const open = part.filter((node) => node.storage === null && node.edges !== 'dead');
      if (dry && last) {
        kept?.end();
        return open.length === 0 ? null : prepare(state, open, options);
      }
      if (open.length > 0) {
        const done = run(state, open, last ? options : state.partial, patience, told);
        if (done !== true) return dry && done === false ? null : done;
      }
      for (const loop of loops[at]!) {
        const waits = runLoop(state, loop, patience);
        if (waits !== null) return waits;
      }
      if (loops[at]!.length > 0) viewMovements(nodes);
    }
  } finally {
    kept?.end();
  }
  return dry ? null : true;
}

/** Holds what was in memory before a rehearsal, so that its runs do not free it: assignments are undone after it. */
class Rehearsed {
  #leaves: readonly Node[];

  constructor(nodes: readonly Node[]) {
    this.#leaves = nodes.filter(({ storage }) => storage !== null);
    for (const node of this.#leaves) node.uses++;
  }

  /** Removes the extra counts; unused nodes are freed once the rehearsal has undone its assignments. */
  end(): void {
    const leaves = this.#leaves;
    this.#leaves = [];
    for (const node of leaves) node.uses--;
    queueMicrotask(() => {
      for (const node of leaves) {
        if (node.edges === 'dead' || node.uses > 0 || node.handles > 0) continue;
        holdUse(node);
        dropUse(node);
      }
    });
  }
}

/** Gives movements of nodes in memory a view of that memory. Then the offset of a slice is bound, and is no part of a plan. */
function viewMovements(nodes: readonly Node[]): void {
  for (const node of nodes) {
    const source = node.src[0];
    if (node.storage !== null || node.edges === 'dead' || source === undefined || source.storage === null) continue;
    const { buffer, view } = source.storage;
    const moved = movedView(node, source.shape, view);
    if (moved === null) continue;
    buffer.retain();
    realise(node, { buffer, view: moved });
  }
}

function movedView(node: Node, from: Shape, view: View): View | null {
  if (isOp(node, 'reshape')) return reshapeView(from, view, node.shape);
  if (isOp(node, 'permute')) return permuteView(view, node.attr.axes);
  if (isOp(node, 'expand')) return expandView(from, view, node.shape);
  if (isOp(node, 'slice')) return sliceView(view, node.attr.start, node.attr.step);
  return null;
}
