/** Entry point of @polygrad/emit-machine. */
export { emitMachineCode } from './emit.ts';
export { type MachineTarget, Refusal } from './target.ts';
export type { MachineCode } from './write.ts';
export { verifyAssigned } from './allocate/verify.ts';
