/** Entry point of @polygrad/emit-machine. */
export { emitMachineCode, type MachineCode } from './emit.ts';
export { MachineCodeError, type MachineTarget } from './target.ts';
