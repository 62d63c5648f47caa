/**
 * Changes of parameters by their layers' forward functions. While `lossAndGrad` runs a loss they wait until its gradients are there. The whole loss
 * is then of the same parameters, and so is what `checkpoint` runs again for the gradients.
 */

/** Changes that wait, of each loss that is being run; the innermost is the last. */
const waiting: (() => void)[][] = [];

/** Changes parameters now, or when the loss that runs has its gradients. True if it is done. */
export function withOwnValues(change: () => void): boolean {
  const changes = waiting.at(-1);
  if (changes === undefined) change();
  else changes.push(change);
  return changes === undefined;
}

/** Runs `body` while other tensors replace parameters; changes follow it, unless it throws. */
export function deferChanges<T>(body: () => T): T {
  const changes: (() => void)[] = [];
  waiting.push(changes);
  let result: T;
  try {
    result = body();
  } finally {
    waiting.pop();
  }
  for (const change of changes) change();
  return result;
}
