/** Entry point @polygrad/emit-c/wgsl-facts: what an engine knows of WGSL without the printer, which pages may load later. */
export { wgslNativeOps, wgslScalars } from './wgsl/facts.ts';
export { foldGrid } from './wgsl/grid.ts';
