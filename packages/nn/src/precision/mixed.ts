/** What `fit` and `evaluate` need for `precision`. Loaded separately it would cost pages more than its size. */
import { autocast, type SmallFloat } from '@polygrad/core/functions';
import { GradScaler } from './grad-scaler.ts';

/** What runs a forward pass with its loss. */
export type Runner = <T>(body: () => T) => T;

/** Runs in mixed precision where a dtype is given. Throws where the engine does not hold it. */
export function mixedRunner(dtype: SmallFloat | undefined): Runner {
  if (dtype === undefined) return (body) => body();
  autocast(dtype, () => undefined);
  return (body) => autocast(dtype, body);
}

/** A scaler for one training, which float16 needs. */
export function ownScaler(dtype: SmallFloat | undefined): GradScaler | null {
  return dtype === 'float16' ? new GradScaler() : null;
}
