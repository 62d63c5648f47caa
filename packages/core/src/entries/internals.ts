/** Entry point @polygrad/core/internals: what `@polygrad/testing` and `@polygrad/numbers` need of core. It may change in any release. */
export { combined } from '../codegen/linearize/reduce.ts';
export { isArg } from '../ir/node.ts';
export { type State, acrossThreads, oneSubgroup } from '../codegen/linearize/group.ts';
export { usualLimits } from '../graph/state.ts';
export { compileProgram } from '../interpreter/compile.ts';
export { binaryOps, ternaryOps, unaryOps } from '../ir/node.ts';
export { BASE_OPS } from '../ir/ir.ts';
export { castPolicies } from '../precision/policy.ts';
export { readAxes, readAxis } from '../ops/reduction/axis-argument.ts';
export { fromDevice, storageBytes, toDevice } from '../engine/pool.ts';
export {
  checkCount,
  checkList,
  checkShape,
  dropAxes,
  keepAxes,
  mostOnHost,
  normalizeAxes,
  normalizeAxis,
  resolveShape,
} from '../shape/axes.ts';
export { broadcastShapes, broadcastsTo, sameShape } from '../shape/view.ts';
export { dtypeInfo, isFloat, isInteger } from '../shape/dtype.ts';
export { getElement, hostArrays } from '../shape/host.ts';
export { expandView, permuteView, reshapeView, sliceView } from '../shape/view.ts';
export { eachNested, nestedShape } from '../shape/nested.ts';
export { checkFunction } from '../shape/options.ts';
export { checkRange } from '../shape/promotion.ts';
export { formatRows, shownElements } from '../tensor/printed.ts';
export { isList, isPlain, say } from '../shape/shown.ts';
export { resolveSlices } from '../shape/axes.ts';
export { type View, isRowMajor, rowMajorStrides, sizeOf } from '../shape/view.ts';
export { anyLowering } from '../targets/any.ts';
export { nodeOf } from '../tensor/handle.ts';
