/**
 * Code that only some dtypes need: small ones, which are computed in 32 bits; vectors of 64-bit integers; atomic instructions, which
 * programs of this engine do without unless they are handwritten.
 *
 * Loaded as one, so that whatever is met first brings all of it: here.ts and late.ts say when.
 */
import { legalize } from '@polygrad/core/kernel';
import { lowerAtomic } from '../emit/atomic.ts';
import { longVector } from '../emit/longs.ts';
import { isShort, loadSmall, storeSmall, uncut, wrapSmall } from '../emit/small-memory.ts';

export interface DtypeCode {
  readonly legalize: typeof legalize;
  readonly lowerAtomic: typeof lowerAtomic;
  readonly longVector: typeof longVector;
  readonly isShort: typeof isShort;
  readonly loadSmall: typeof loadSmall;
  readonly storeSmall: typeof storeSmall;
  readonly uncut: typeof uncut;
  readonly wrapSmall: typeof wrapSmall;
}

export const code: DtypeCode = {
  legalize,
  lowerAtomic,
  longVector,
  isShort,
  loadSmall,
  storeSmall,
  uncut,
  wrapSmall,
};
