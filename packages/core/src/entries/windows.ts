/** Entry point @polygrad/core/kernel/windows: how emitters of vectors read neighbouring elements. Pages load it with the emitter of the CPU engine. */
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
