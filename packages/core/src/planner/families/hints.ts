/** One hint to the user about a form whose sizes do not share plans: every new size makes a plan. */
import { showShape } from '@polygrad/compiler/shape/errors';
import type { Logger } from '../../engine/engine.ts';
import type { CapturedGraph } from '../capture/captured-graph.ts';
import { type Sample, sampleOf } from './sizes.ts';

/** The hint comes after this many plans of one form in a row. */
const manyPlans = 20;
/** With more hits than this in between, plans do not count as a row. */
const mostHits = 100;
/** The hint names at most this many shapes. */
const mostShapes = 3;

interface Row {
  plans: number;
  hits: number;
  readonly first: Sample;
}

/** Counts of one engine; it gives its hint once. */
export class PlanHints {
  /** By hash of the form; null once the hint was given. */
  #rows: Map<number, Row> | null = new Map();

  /** A form got a shared plan, which ends its row. */
  shared(hash: number): void {
    this.#rows?.delete(hash);
  }

  /** A form got its own plan, after `hits` flushes with known plans. */
  made(hash: number, captured: CapturedGraph, hits: number, log: Logger): void {
    if (this.#rows === null) return;
    const row = this.#rows.get(hash);
    if (row === undefined || hits - row.hits > mostHits) {
      // Programs with many forms: old rows have ended.
      if (this.#rows.size >= 64) this.#rows.clear();
      this.#rows.set(hash, { plans: 1, hits, first: sampleOf(captured) });
      return;
    }
    row.hits = hits;
    if (++row.plans < manyPlans) return;
    this.#rows = null;
    const text =
      `[polygrad] ${manyPlans} new plans in a row for one computation, because ${changes(row.first, captured)}. Each takes as long as planning and compiling; pad to a few sizes. ` +
      'See https://github.com/polygrad/polygrad/blob/main/docs/plans.md; setLogger(null) silences this.';
    // After planning: the logger may compute.
    void Promise.resolve(text).then(log);
  }
}

/** How a captured graph differs from one of the same form, in words. */
function changes(before: Sample, captured: CapturedGraph): string {
  const leaves: string[] = [];
  let inner = '';
  for (let i = 0; i < Math.min(captured.count, before.shapes.length); i++) {
    const { shape, storage, op } = captured.nodes[i]!;
    const was = before.shapes[i]!;
    if (was.length === shape.length && was.every((n, axis) => n === shape[axis])) continue;
    const text = `${showShape(was)} became ${showShape(shape)}`;
    if (storage !== null) leaves.push(text);
    else if (inner === '') inner = `${op} ${text}`;
  }
  if (leaves.length > 0) return `shapes of its data change: ${[...new Set(leaves)].slice(0, mostShapes).join(', ')}`;
  if (inner !== '') return `shapes inside change: ${inner}`;
  return 'something but its data and shapes changes, as where slices begin or which tensors are kept';
}
