/** What `fit` and `evaluate` need for `precision`; they load it only then. */
import { autocast, type SmallFloat } from '@polygrad/core/functions';
import { GradScaler } from './grad-scaler.ts';

/** What runs a forward pass with its loss. */
export type Runner = <T>(body: () => T) => T;

/** Runs in mixed precision. Throws where the engine does not hold the dtype. */
export function mixedRunner(dtype: SmallFloat): Runner {
  autocast(dtype, () => undefined);
  return (body) => autocast(dtype, body);
}

/** The scaler of a training of its own, which float16 needs. */
export function ownScaler(dtype: SmallFloat): GradScaler | null {
  return dtype === 'float16' ? new GradScaler() : null;
}
