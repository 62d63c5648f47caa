/** Entry point @polygrad/core/testing: engines for tests, without a device, and programs to compare engines by. */
export { createFaultyEngine, type Fault, type FaultyEngine, type FaultyMember } from './faulty-engine.ts';
export { createNullEngine, type NullEngine, type NullEngineCounts } from './null-engine.ts';
export { comparePrograms, everyNth } from './compare-programs.ts';
export { castCases, operationCases } from './operation-cases.ts';
export {
  type ProgramCase,
  type ProgramTolerance,
  programDifference,
  runProgramCases,
  withoutDenormals,
} from './program-case.ts';
export { type RandomDType, randomProgram } from './random-program.ts';
export { groupCases } from './subgroup-cases.ts';
export { threadCases } from './thread-cases.ts';
export { createReferenceEngine, type ReferenceEngineOptions } from './reference-engine.ts';
export { type SpecialValues, evaluateSpecial, specialValues } from './special-values.ts';
export { HostileError, hostileArguments, strangeOptions } from './hostile-arguments.ts';
export { wrongCalls } from './wrong-arguments.ts';
