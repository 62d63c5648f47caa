/**
 * What the emitter must know about the machine and the memory it writes for, and what it calls things in registers.
 */
import type { Program } from '@polygrad/core/kernel/ir';
import * as T from '../asm/types.ts';
import type { ValType } from '../asm/types.ts';

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
   * gate is false read them. Constant parts of indices below it may be added to an address after it was cut to its width.
   */
  readonly lowBytes: number;
  /** Byte offset of the scalars in the args block. */
  readonly scalarOffset: number;
}

/** How a value is held in registers. */
export type RegKind = 'f32' | 'f64' | 'i32' | 'u32' | 'i64' | 'u64' | 'bool';

export interface Reg {
  readonly kind: RegKind;
  /** WebAssembly type of a scalar. */
  readonly type: ValType;
  /** Bytes of one lane of a vector. Masks come in both widths; this is the one memory and constants give. */
  readonly width: 4 | 8;
}

const regs: Readonly<Partial<Record<DType, Reg>>> = {
  float32: { kind: 'f32', type: T.f32, width: 4 },
  float64: { kind: 'f64', type: T.f64, width: 8 },
  int32: { kind: 'i32', type: T.i32, width: 4 },
  uint32: { kind: 'u32', type: T.i32, width: 4 },
  int64: { kind: 'i64', type: T.i64, width: 8 },
  uint64: { kind: 'u64', type: T.i64, width: 8 },
  bool: { kind: 'bool', type: T.i32, width: 4 },
  // Small integers are loaded into 32 bits and stay there until they are stored; 16-bit floats arrive as uint16.
  int8: { kind: 'i32', type: T.i32, width: 4 },
  int16: { kind: 'i32', type: T.i32, width: 4 },
  uint8: { kind: 'u32', type: T.i32, width: 4 },
  uint16: { kind: 'u32', type: T.i32, width: 4 },
};

/** Bits of a small integer dtype, or 0. */
export function smallBits(dtype: DType | 'void'): 0 | 8 | 16 {
  if (dtype === 'int8' || dtype === 'uint8') return 8;
  return dtype === 'int16' || dtype === 'uint16' ? 16 : 0;
}

/** The register form of a dtype; throws for dtypes this engine does not compute with. */
export function regOf(dtype: DType | 'void'): Reg {
  const reg = dtype === 'void' ? undefined : regs[dtype];
  if (reg === undefined)
    refuse(`dtype ${dtype} is not executed by the CPU engine; cast to one of ${Object.keys(regs).join(', ')}`);
  return reg;
}

/** Why a program cannot be printed; emit.ts turns it into a CompileError with the program's text. */
export class Refusal extends Error {}

/** Gives up on the program. Pages do not name rules that only a compiler can break. */
export function refuse(what: string | false): never {
  throw new Refusal(what || 'it breaks a rule');
}
