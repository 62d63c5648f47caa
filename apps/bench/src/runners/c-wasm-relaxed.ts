/** The C baseline with relaxed SIMD: multiply and add in one rounding where the processor has it. */
export { createRelaxedRunner as createRunner } from './c-wasm.ts';
