/** Entry point @polygrad/core/engine: what a backend implements, and where it registers. */
export type {
  Binding,
  Command,
  Groups,
  CompiledKernel,
  EngineBuffer,
  EngineCaps,
  EngineLostInfo,
  EngineMemory,
  EngineTuning,
  IEngine,
  ReadyProgress,
  KernelSource,
  Lowering,
  TuningStore,
} from '../engine/engine.ts';
export type { KeptCode } from '@polygrad/compiler/ir/ir';
export { showCaps, showEngine, showKernel } from '#inspection';
export type { ProductLibrary } from '@polygrad/compiler/contraction/template';
export {
  CompileError,
  DeviceError,
  DeviceFaultError,
  DeviceLostError,
  EngineDisposedError,
  EngineMissingError,
  OutOfMemoryError,
  UnsupportedError,
} from '../engine/errors.ts';
export {
  type BackendProvider,
  cpuEngine,
  getBackend,
  getEngine,
  listBackends,
  type Probe,
  registerBackend,
  setEngine,
} from '../engine/registry.ts';

export {
  checkAttached,
  checkFields,
  checkNames,
  numberFrom,
  oneOf,
  type OptionNames,
  type OptionRule,
  type OptionRules,
  shown,
} from '@polygrad/compiler/shape/options';
export { ArgumentError, fault, PolygradError, type PolygradErrorCode } from '@polygrad/compiler/shape/errors';
export { lossGradients } from '../autodiff/grad.ts';
export { uploaded } from '../ops/creation/creation.ts';
export { holdFlushes } from '../graph/scope.ts';
export { withStandIns } from '../tensor/scope.ts';
export { refuseNames, showAs, told } from '#shown-as';
export { compareEngines, type ComparedWork, type CompareOptions, type EngineComparison } from '../tuning/compare.ts';
export { type LibraryPrograms, libraryPrograms } from '@polygrad/compiler/contraction/products/library';
export { browserStore, defaultStore, diskStore, memoryStore } from '../tuning/store.ts';
