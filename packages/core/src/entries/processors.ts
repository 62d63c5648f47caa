/**
 * Entry point @polygrad/core/engine/processors: how loops are shaped for engines that know their processor.
 *
 * A separate entry, so that pages whose engine is WebAssembly carry nothing of it.
 */
export { processorLowering } from '../targets/processors.ts';
export { fittingBytes, type ProcessorFacts } from '@polygrad/compiler/codegen/costs/processors';
