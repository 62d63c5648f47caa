/**
 * Flushes that wait for data of another engine: what each of them has still to compute, in order.
 *
 * A batch goes on when its data arrives, at the next flush, and when somebody reads or waits; always after those before it. One
 * that fails leaves its nodes as recipes: reading them tries again and tells.
 */
import type { Node } from '../graph/node.ts';
import { advance, arrivals } from './realise.ts';

interface Batch {
  readonly nodes: readonly Node[];
  /** What it waits for, since it was tried last. */
  arrival: Promise<void> | null;
}

const batches: Batch[] = [];

/** Nodes of a flush that could not be computed yet. Dead ones are forgotten in time. */
export function wait(nodes: readonly Node[], arrival: Promise<void>): void {
  const batch: Batch = { nodes, arrival: null };
  batches.push(batch);
  listen(batch, arrival);
}

function listen(batch: Batch, arrival: Promise<void>): void {
  batch.arrival = arrival;
  const next = (failed: boolean): void => {
    if (batch.arrival !== arrival) return;
    batch.arrival = null;
    if (failed) drop(batch);
    resume();
  };
  arrival.then(
    () => next(false),
    () => next(true),
  );
}

function drop(batch: Batch): void {
  const at = batches.indexOf(batch);
  if (at >= 0) batches.splice(at, 1);
}

/** Computes what can be computed by now, oldest first. */
export function resume(): void {
  for (let batch = batches[0]; batch !== undefined; batch = batches[0]) {
    const open = batch.nodes.filter((node) => node.storage === null && node.edges !== 'dead');
    let arrival: Promise<void> | null = null;
    try {
      if (open.length > 0) arrival = advance(open, 'resumed', 'memory');
    } catch {
      // Told to whoever reads one of the nodes.
    }
    if (arrival !== null) {
      listen(batch, arrival);
      return;
    }
    drop(batch);
  }
}

/** True while some flush is not finished. */
export function isWaiting(): boolean {
  return batches.length > 0;
}

/** Resolves when every flush so far is finished or has failed. */
export async function settle(): Promise<void> {
  const last = batches[batches.length - 1];
  while (last !== undefined && batches.includes(last)) {
    const head = batches[0] as Batch;
    await (head.arrival as Promise<void>).catch(() => undefined);
    resume();
  }
  await arrivals();
}
