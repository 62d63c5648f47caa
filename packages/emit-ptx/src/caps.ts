/** What a compiler of kernels must know of a card whose programs are emitted as PTX. */
import type { DType, KOp, MatrixForm, TargetCaps } from '@polygrad/core/kernel';

/** What the driver says of a card. What is left out is what every card of its compute capability has. */
export interface PtxLimits {
  /** Most bytes of shared memory of a group, asked for at the launch. Default 48 KiB. */
  readonly sharedBytes?: number;
  /** Most threads in a group. Default 1024. */
  readonly maxGroup?: number;
  /** Multiprocessors. Default 16. */
  readonly multiprocessors?: number;
  /** How exact products of matrices of float32 are: 'high' multiplies in TF32, from sm_80 on. Default 'highest'. */
  readonly float32MatmulPrecision?: 'highest' | 'high';
}

// biome-ignore format: a list
const dtypes: readonly DType[] = [
  'float32', 'float16', 'bfloat16', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
];

/** Value operations PTX has besides BASE_OPS, exactly as the contract wants them. */
export const ptxNativeOps: ReadonlySet<KOp> = new Set<KOp>([
  'ABS',
  'CEIL',
  'TRUNC',
  'ROUND',
  'ISNAN',
  'RECIP',
  'FMA',
  'MULADD',
  'MULHI',
]);

/** Tiles of matrices by the compute capability that has them first. */
const tiles: readonly (readonly [capability: number, form: MatrixForm])[] = [
  [75, { dtype: 'float16', tile: 'm16n8k8' }],
  [80, { dtype: 'float16', tile: 'm16n8k16' }],
  [80, { dtype: 'bfloat16', tile: 'm16n8k16' }],
];
/** Only on request: TF32 has ten binary digits after the point. */
const inTf32: (typeof tiles)[number] = [80, { dtype: 'float32', tile: 'm16n8k8' }];

/**
 * What kernels are lowered for on a card of this compute capability. An engine adds what it knows of memory.
 *
 * @example
 * ptxCaps(80, { multiprocessors: 108 }).simt; // true
 */
export function ptxCaps(computeCapability: number, limits: PtxLimits = {}): TargetCaps {
  const listed = limits.float32MatmulPrecision === 'high' ? [...tiles, inTf32] : tiles;
  return {
    dtypes: new Set(dtypes),
    computes: new Set(dtypes),
    nativeOps: ptxNativeOps,
    flushesDenormals: false,
    simt: true,
    vectorBytes: 16,
    sharedBytes: limits.sharedBytes ?? 48 * 1024,
    matrix: listed.filter(([least]) => computeCapability >= least).map(([, form]) => form),
    copies: computeCapability >= 80,
    subgroups: { least: 32, most: 32, numbered: true },
    parts: 32,
    maxGroup: limits.maxGroup ?? 1024,
    // Of 4 KiB of parameters: eight bytes each, and room for scalars.
    maxBindings: 384,
    parallelism: limits.multiprocessors ?? 16,
    // The order of float additions would depend on the threads; results here never do.
    atomics: new Set(),
  };
}
