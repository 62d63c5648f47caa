/** Entry point @polygrad/testing: engines for tests, without a device, and programs to compare engines by. */
export {
  createFaultyEngine,
  type Fault,
  type FaultKind,
  faultKinds,
  type FaultyEngine,
  type FaultyMember,
} from './faulty-engine.ts';
export { createWrongEngine } from './wrong-engine.ts';
export { createNullEngine, type NullEngine, type NullEngineCounts } from './null-engine.ts';
export { comparePrograms, everyNth } from './compare-programs.ts';
export { edgeFloats, type LaneProgram, laneProgram } from './lane-program.ts';
export { castCases, operationCases } from './operation-cases.ts';
export {
  type ProgramCase,
  type ProgramTolerance,
  programDifference,
  runProgramCases,
  withoutDenormals,
} from './program-case.ts';
export { randomGroups } from './random-groups.ts';
export { type RandomDType, randomProgram } from './random-program.ts';
export { groupCases } from './subgroup-cases.ts';
export { threadCases } from './thread-cases.ts';
export { createReferenceEngine, type ReferenceEngineOptions } from './reference-engine.ts';
export { type SpecialValues, evaluateSpecial, specialValues } from './special-values.ts';
export { HostileError, hostileArguments, strangeOptions } from './hostile-arguments.ts';
export { callDifference, type CallTolerances, type CallTolerance } from './call-differences.ts';
export { type Called, type Outcome, outcomeOf, performed, type ReadTensor } from './call-outcomes.ts';
export { type CallEntry, type CallTable, callTable, uncalled, untold } from './call-table.ts';
export { callText, type Change, changedCalls, type ChangeOptions, hostCall } from './changed-calls.ts';
export type { Exported, RightCall } from './right-calls.ts';
export { refusalComplaint, wrongCalls } from './wrong-arguments.ts';
export { callable, noting, rightCalls } from './right-calls.ts';
export { optionsAt } from './wrong-arguments.ts';
