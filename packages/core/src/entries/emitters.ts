/** Entry point @polygrad/core/kernel/emitters: what emitters ask of programs besides what `@polygrad/core/kernel` answers. Pages load it with an emitter. */
export { divisorOf, identifier } from '@polygrad/compiler/ir/divisors';
export { foldedValues } from '@polygrad/compiler/ir/folding';
export {
  type SquareColumn,
  findRuns,
  isGather,
  lanesOfPart,
  type Pick,
  pickColumn,
  pickWindows,
  type Run,
  type RunPlace,
  type Window,
} from '@polygrad/compiler/ir/windows';
