/**
 * What the emitter must know about the machine and the memory it writes for, and what it calls things in registers.
 */
import type { Program } from '@polygrad/core/kernel';
import { ValType } from '../asm/opcodes.ts';

export type DType = Program['scalars'][number];

/** Parameters of the emitter. Equal targets give equal bytes for equal programs. */
export interface EmitTarget {
  /** 64: addresses are i64 (memory64). */
  readonly addressBits: 32 | 64;
  /** The memory is shared between threads: ATOMIC needs atomic instructions. */
  readonly shared: boolean;
  /** relaxed_madd exists and rounds once: MULADD and FMA use it. */
  readonly fusedMadd: boolean;
  /** relaxed_laneselect exists. */
  readonly laneSelect: boolean;
  /** Scratch bytes a program may declare as SHARED. */
  readonly sharedBytes: number;
  /**
   * The first `lowBytes` bytes of memory are zero and never written, and nothing a kernel touches lies there: loads whose
   * gate is false read them, and constant parts of indices below it may be added to an address after it was cut to its width.
   */
  readonly lowBytes: number;
  /** Byte offset of the scalars in the args block. */
  readonly scalarOffset: number;
}

/** How a value is held in registers. */
export type RegKind = 'f32' | 'f64' | 'i32' | 'u32' | 'bool';

export interface Reg {
  readonly kind: RegKind;
  /** WebAssembly type of a scalar. */
  readonly type: ValType;
  /** Bytes of one lane of a vector. Masks come in both widths; this is the one memory and constants give. */
  readonly width: 4 | 8;
}

const regs: Readonly<Partial<Record<DType, Reg>>> = {
  float32: { kind: 'f32', type: ValType.f32, width: 4 },
  float64: { kind: 'f64', type: ValType.f64, width: 8 },
  int32: { kind: 'i32', type: ValType.i32, width: 4 },
  uint32: { kind: 'u32', type: ValType.i32, width: 4 },
  bool: { kind: 'bool', type: ValType.i32, width: 4 },
};

/** Dtypes the emitter handles. */
export const emittedDtypes: readonly DType[] = Object.keys(regs) as DType[];

/** The register form of a dtype; throws for dtypes this engine does not compute with. */
export function regOf(dtype: DType | 'void'): Reg {
  const reg = dtype === 'void' ? undefined : regs[dtype];
  if (reg === undefined)
    refuse(`dtype ${dtype} is not executed by the CPU engine; cast to one of ${emittedDtypes.join(', ')}`);
  return reg;
}

/** Why a program cannot be printed; emit.ts turns it into a CompileError with the program's text. */
export class Refusal extends Error {}

/** Gives up on the program. */
export function refuse(what: string): never {
  throw new Refusal(what);
}
