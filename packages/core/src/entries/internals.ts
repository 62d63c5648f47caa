/** Entry point @polygrad/core/internals: what `@polygrad/testing` and `@polygrad/numbers` need of core. It may change in any release. */
export { combined } from '@polygrad/compiler/codegen/linearize/reduce';
export { isArg, binaryOps, ternaryOps, unaryOps, BASE_OPS } from '@polygrad/compiler/ir/operations';
export { acrossThreads, oneSubgroup } from '@polygrad/compiler/codegen/linearize/group';
export type { State } from '@polygrad/compiler/codegen/lowering';
export { usualLimits } from '../graph/state.ts';
export { compileProgram } from '@polygrad/compiler/interpreter/compile';
export { castPolicies } from '../precision/autocast.ts';
export {
  readAxes,
  readAxis,
  checkCount,
  checkList,
  checkShape,
  dropAxes,
  keepAxes,
  mostOnHost,
  normalizeAxes,
  normalizeAxis,
  resolveShape,
  resolveSlices,
} from '@polygrad/compiler/shape/axes';
export { fromDevice, storageBytes, toDevice } from '../engine/pool.ts';
export {
  sameShape,
  expandView,
  permuteView,
  reshapeView,
  sliceView,
  type View,
  isRowMajor,
  rowMajorStrides,
  sizeOf,
} from '@polygrad/compiler/shape/view';
export { broadcastShapes, broadcastsTo } from '@polygrad/compiler/shape/broadcast';
export { dtypeInfo, isFloat, isInteger } from '@polygrad/compiler/shape/dtype';
export { getElement, hostArrays } from '@polygrad/compiler/shape/host';
export { eachNested, nestedShape } from '@polygrad/compiler/shape/nested';
export { checkFunction } from '@polygrad/compiler/shape/options';
export { checkRange } from '@polygrad/compiler/shape/promotion';
export { formatRows, shownElements } from '../tensor/printed.ts';
export { isList, isPlain, say } from '@polygrad/compiler/shape/shown';
export { anyLowering, lowerContraction } from '../targets/any.ts';
export { nodeOf } from '../tensor/handle.ts';
