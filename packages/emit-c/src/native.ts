/** Entry point @polygrad/emit-c/native: what an engine knows of WGSL without the printer, which pages may load later. */
export { wgslNativeOps, wgslScalars } from './wgsl/facts.ts';
export { foldGrid } from './wgsl/grid.ts';
