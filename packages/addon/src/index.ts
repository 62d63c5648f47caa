/** Entry point @polygrad/addon: what engines with a native addon share. */
export { CommandBuffer } from './command-buffer.ts';
export { AddonEngine, type EngineDriver, type EngineParts } from './engine.ts';
export { EngineState, type MemoryFigures, type Translate } from './engine-state.ts';
export { AddonKernel, type KernelForm, type KernelTable } from './kernel.ts';
export { AddonLibrary, type LibraryParts, type ProductLibraries, SeveralLibraries } from './library.ts';
export { type AddonPlaces, isCutShort, loadAddon } from './load.ts';
export { DeviceMemory, type MemoryDriver } from './memory.ts';
export { isNativeError, type NativeError, withDriverCode } from './native-error.ts';
export { deviceRules, namedDevice, tuningOf } from './options.ts';
export { isRepeatable } from './repeatable.ts';
