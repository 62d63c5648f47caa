/** What this package must know of its target machine, and its error. */
import { PolygradError, type Program } from '@polygrad/core/kernel';

export type DType = Program['scalars'][number];

/** Parameters of the emitter. Equal targets give equal bytes for equal programs. */
export interface MachineTarget {
  /** `x64-v3`: AVX2, FMA, BMI2. `x64-v4`: AVX-512 F, BW, DQ and VL besides. `arm64`: ARMv8-A with NEON. */
  readonly isa: 'x64-v3' | 'x64-v4' | 'arm64';
  /** The widest vectors used; 64 only with v4, 16 with arm64. */
  readonly vectorBytes: 16 | 32 | 64;
  /** Scratch bytes a program may declare as SHARED. */
  readonly sharedBytes: number;
  /** Byte offset of the scalars in the args block. */
  readonly scalarOffset: number;
  /** Code that compares every index with the length of its memory, and ends with an error if it is outside. */
  readonly checked?: boolean;
  /**
   * Outputs of at least this size are stored past the caches, which would not keep them until they are read; inputs of it that loops only read are
   * prefetched. Absent: none.
   */
  readonly streamBytes?: number | undefined;
  /** Fewer registers than the machine has, to test spilling; at least 5 general, 4 vector and 4 mask registers. */
  readonly registers?: { readonly general?: number; readonly vector?: number; readonly mask?: number };
}

/** How a value is held in registers. */
export type Kind = 'f32' | 'f64' | 'i32' | 'u32' | 'i64' | 'u64' | 'bool';

const kinds: Readonly<Partial<Record<DType, Kind>>> = {
  float32: 'f32',
  float64: 'f64',
  int32: 'i32',
  uint32: 'u32',
  int64: 'i64',
  uint64: 'u64',
  bool: 'bool',
  // Small integers are extended to 32 bits until they are stored; 16-bit floats come as uint16.
  int8: 'i32',
  int16: 'i32',
  uint8: 'u32',
  uint16: 'u32',
};

/**
 * Why a program is not compiled; an engine reports it as a CompileError.
 *
 * @example
 * const error = new MachineCodeError('dtype float16 is not executed');
 * error.message; // '[emit-machine] dtype float16 is not executed'
 */
export class MachineCodeError extends PolygradError {
  override readonly name: string = 'MachineCodeError';
  /** The reason without the prefix. */
  readonly what: string;

  constructor(what: string) {
    super('COMPILE', 'emit-machine', what);
    this.what = what;
  }
}

/** Throws a MachineCodeError. */
export function refuse(what: string): never {
  throw new MachineCodeError(what);
}

/** How values of a dtype are held. */
export function kindOf(dtype: DType | 'void'): Kind {
  const kind = dtype === 'void' ? undefined : kinds[dtype];
  return (
    kind ?? refuse(`dtype ${dtype} is not executed by this engine; cast to one of ${Object.keys(kinds).join(', ')}`)
  );
}

/** Bytes of one lane. */
export function widthOf(kind: Kind): 4 | 8 {
  return kind === 'f64' || kind === 'i64' || kind === 'u64' ? 8 : 4;
}

/** True for kinds whose scalars lie in vector registers. */
export function isFloat(kind: Kind): boolean {
  return kind === 'f32' || kind === 'f64';
}

/** Bits of a small integer dtype, or 0. */
export function smallBits(dtype: DType | 'void'): 0 | 8 | 16 {
  if (dtype === 'int8' || dtype === 'uint8') return 8;
  return dtype === 'int16' || dtype === 'uint16' ? 16 : 0;
}
