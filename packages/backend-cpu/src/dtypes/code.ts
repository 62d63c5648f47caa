/**
 * Code that only some dtypes need: small ones, which are computed in 32 bits; vectors of 64-bit integers; atomic instructions, which
 * programs of this engine do without unless they are handwritten.
 *
 * Loaded as one, so that whatever is met first brings all of it: here.ts and late.ts say when. Legalizing is taken from all of
 * `vectorLowering`, most of which the engine has: bundlers cut less finely what imports alike.
 */
import { vectorLowering } from '@polygrad/core/engine/vectors';
import { lowerAtomic } from '../emit/atomic.ts';
import { longVector } from '../emit/longs.ts';
import { isShort, loadSmall, storeSmall, uncut, wrapSmall } from '../emit/small-memory.ts';

export interface DtypeCode {
  readonly legalize: NonNullable<(typeof vectorLowering)['legalize']>;
  readonly lowerAtomic: typeof lowerAtomic;
  readonly longVector: typeof longVector;
  readonly isShort: typeof isShort;
  readonly loadSmall: typeof loadSmall;
  readonly storeSmall: typeof storeSmall;
  readonly uncut: typeof uncut;
  readonly wrapSmall: typeof wrapSmall;
}

export const code: DtypeCode = {
  legalize: vectorLowering.legalize!,
  lowerAtomic,
  longVector,
  isShort,
  loadSmall,
  storeSmall,
  uncut,
  wrapSmall,
};
