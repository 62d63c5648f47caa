/** What a compiler must know of the machine that its programs are for. */
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import type { Exprs } from './expr.ts';
import type { KNode, KOp, Program } from './ir.ts';
import type { MatrixForm } from './matrix.ts';

/** The node, its sources ROUNDED where needed (arithmetic/rounded.ts). */
export type KeepRounding = (e: Exprs, n: KNode) => KNode;

/** Static facts about a target. What else is known of an engine extends them (engine/engine.ts). */
export interface TargetCaps {
  /** Dtypes that tensors may have on this engine. */
  readonly dtypes: ReadonlySet<DType>;
  /**
   * Dtypes the emitter computes in; by default bool and those of four bytes or more. Programs reach the engine with the other
   * ones only loaded, stored, moved and cast to and from 32-bit numbers, 16-bit floats as uint16 (arithmetic/legalize.ts).
   */
  readonly computes?: ReadonlySet<DType>;
  /**
   * True where the emitter casts between float32 and float16 itself, to nearest and with subnormals. Programs that reach it then have float16 between
   * BITCAST and CAST, and nowhere else.
   */
  readonly castsFloat16?: boolean;
  /** Bytes of one element in device memory where that differs from the host (bool on engines that store words). */
  readonly storageBytes?: Partial<Readonly<Record<DType, number>>>;
  /** Value operations the emitter prints itself besides BASE_OPS; all others are decomposed in the IR. */
  readonly nativeOps: ReadonlySet<KOp>;
  /**
   * Present where the device's compiler regroups float arithmetic: puts ROUNDED, which must be among `nativeOps`, where that would show
   * (`keepRounding` of `engine/threads`).
   */
  readonly keepRounding?: KeepRounding | undefined;
  /**
   * True where arithmetic on float32 may take denormal numbers, those below the normal ones, for 0. What is moved keeps its bits. Casts of floats
   * to bool reach the emitter, which looks at bits; for other targets they become comparisons with 0.
   */
  readonly flushesDenormals?: boolean;
  /** True where a group has several threads, workgroup memory and barriers. */
  readonly simt: boolean;
  /** Bytes of one hardware vector the emitter handles (16 for SIMD128), or the element size for scalar engines. */
  readonly vectorBytes: number;
  /**
   * The bytes of vectors that suit loops along which so many elements of so many bytes lie in a row. They count where narrower vectors than
   * `vectorBytes` are as good but for their lanes. `reduced`: they are reduced, so that the end of a last vector cannot be moved back.
   */
  readonly fittingBytes?: (run: number, bytes: number, reduced?: boolean) => number;
  /** Bytes of a lane of bool in loops that compute nothing else. Left out where a lane is as wide as one of a number: four bytes. */
  readonly boolBytes?: number;
  /** Bytes of group-private memory a kernel may declare (SHARED). */
  readonly sharedBytes: number;
  /**
   * True where SHARED is ordinary memory and threads of a group run one after another: software devices. Then nothing is copied
   * there to be read faster.
   */
  readonly sharedIsMemory?: boolean;
  /**
   * Subgroups, whose threads are reduced over without group memory (SUBGROUP of the kernel IR). `least` and `most` threads form one; a group of
   * as many threads as both is a single one. With `numbered` a thread knows the number of its own (SPECIAL). Left out where there are none.
   */
  readonly subgroups?: { readonly least: number; readonly most: number; readonly numbered: boolean } | undefined;
  /** Threads of a part of a group that meet at less cost than all of it (BARRIER of the kernel IR). Left out where a part meets as the group does. */
  readonly parts?: number | undefined;
  /** Tiles of matrices that 32 threads multiply as one (MATRIX of the kernel IR). Left out where there are none. */
  readonly matrix?: readonly MatrixForm[] | undefined;
  /** True where threads copy to group memory beside other work (COPY of the kernel IR). Buffers are bound at multiples of 16 bytes there. */
  readonly copies?: boolean | undefined;
  /** Most threads in a group. */
  readonly maxGroup: number;
  /** Most tensors one kernel may bind. */
  readonly maxBindings: number;
  /** Parallel workers that take groups (CPU threads, compute units): a hint for choosing grid sizes, never for results. */
  readonly parallelism: number;
  readonly atomics: ReadonlySet<'add' | 'max' | 'min' | 'or'>;
}

// Which dtypes an engine computes in, of those that it holds.

/**
 * True if the engine computes in the dtype: it says so, or elements have four bytes or more.
 *
 * @example
 * computesIn(createReferenceEngine().caps, 'float32'); // true
 */
export function computesIn(caps: Pick<TargetCaps, 'computes'>, dtype: DType): boolean {
  return caps.computes?.has(dtype) ?? (dtype === 'bool' || dtypeInfo[dtype].bytes >= 4);
}

/**
 * True if the engine computes in all dtypes of a program, so that nothing is left to legalize.
 *
 * @example
 * const { program } = randomProgram(1);
 * computesAll(createReferenceEngine().caps, program); // true
 */
export function computesAll(caps: Pick<TargetCaps, 'computes'>, { body, params }: Program): boolean {
  const fits = ({ dtype }: KNode): boolean => dtype === 'void' || computesIn(caps, dtype);
  return body.every(fits) && params.every(fits);
}

/** A target with what rewrites programs to the dtypes it computes in, if it needs that. */
interface Legalizing extends TargetCaps {
  readonly lowering: { legalize?(program: Program, caps: TargetCaps): Program };
}

/** The programs of a lowered kernel as an engine takes them. Those that an earlier process has compiled are. */
export function legalPrograms(
  dispatches: readonly { readonly program: Program }[],
  caps: Legalizing,
): readonly Program[] {
  return dispatches.map(({ program }) =>
    program.kept === undefined ? (caps.lowering.legalize?.(program, caps) ?? program) : program,
  );
}
