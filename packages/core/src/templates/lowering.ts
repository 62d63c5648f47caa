/**
 * What the two kinds of engines need to have kernels shaped for them. An engine names its own in `caps.lowering`: a page with one kind of engine
 * carries nothing of the other.
 */
import { shapeVectors } from '../kernel/axes.ts';
import { shapeSimt } from '../kernel/axes-simt.ts';
import { startTuning } from '../tuning/automatic.ts';
import { choicesOf } from '../tuning/choices.ts';
import { byTiles } from './choice.ts';
import type { Lowering } from './contract.ts';
import { lowerTiled } from './gemm.ts';
import { lowerPlain } from './plain.ts';
import { lowerContraction, threadContraction, vectorContraction } from './select.ts';
import { candidateTiles } from './simt-choose.ts';
import { lowerSimt } from './simt-gemm.ts';
import { nameOf } from './simt-tile.ts';

/** For engines where a group is one thread, with vectors. */
export const vectorLowering: Lowering = {
  shape: shapeVectors,
  contraction: (kernel, hint, e, { caps }) => vectorContraction(kernel, hint, e, caps),
  ways: (c, kernel, e, caps) => [[byTiles, () => lowerTiled(c, e, caps) ?? lowerPlain(kernel, caps)]],
};

/** For engines with groups of threads, workgroup memory and barriers. */
export const threadLowering: Lowering = {
  shape: shapeSimt,
  contraction: (kernel, hint, e, engine) => threadContraction(kernel, hint, e, engine.caps, choicesOf(engine)),
  ways: (c, _kernel, e, caps) =>
    candidateTiles(c, caps).map((tile) => [nameOf(tile), () => lowerSimt(c, e, caps, tile)]),
  start: startTuning,
};

const of = ({ simt }: { readonly simt: boolean }): Lowering => (simt ? threadLowering : vectorLowering);

/** For engines that are one or the other by `caps.simt`, and for those with a library. */
export const anyLowering: Lowering = {
  shape: (nests, e, caps) => of(caps).shape(nests, e, caps),
  contraction: (kernel, hint, e, engine) => lowerContraction(kernel, hint, e, engine.caps, choicesOf(engine)),
  ways: (c, kernel, e, caps) => of(caps).ways(c, kernel, e, caps),
  start: startTuning,
};
