/**
 * Programs for engines that store small dtypes but do not compute in them.
 *
 * Small integers become int32 arithmetic whose results wrap, 16-bit floats float32 arithmetic whose results are rounded; only
 * loads and stores of small integers remain, 16-bit floats being read and written as uint16. Values are brought back into
 * their dtype only where the difference is visible: sums, products and bit operations of integers wrap once before they are compared,
 * divided or cast, and storing truncates by itself. Values that are only moved keep their bits.
 */
import { computesAll, computesIn, type TargetCaps } from '../ir/target.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import type { KNode, KNodeOf, Program } from '../ir/ir.ts';
import type { BinaryOp, TernaryOp, UnaryOp } from '../ir/operations.ts';
import { assumeBounds, highOf, isArithmetic, lowOf } from '../ir/node.ts';
import { endsOf } from '../ir/block-ends.ts';
import { ProgramBuilder } from '../ir/builder/builder.ts';
import type { Exprs } from '../ir/expr.ts';
import { remake } from '../ir/rewrite.ts';
import {
  fromWide,
  type SmallContext,
  SmallValue,
  smallBinary,
  smallTernary,
  smallUnary,
  storageDtype,
  wideDtype,
} from './small-values.ts';

/**
 * The program in dtypes the engine computes in; the same object if nothing has to change.
 *
 * @example
 * const { program } = randomProgram(1);
 * legalize(program, createReferenceEngine().caps) === program; // true
 */
export function legalize(program: Program, caps: TargetCaps): Program {
  return computesAll(caps, program) ? program : new Legalizer(program, caps).run();
}

/** A node of the new program, or a value of a small dtype. */
type Lowered = KNode | SmallValue;

class Legalizer {
  readonly #program: Program;
  readonly #ends: Int32Array;
  readonly #caps: TargetCaps;
  readonly #b = new ProgramBuilder();
  readonly #e: Exprs = this.#b.e;
  readonly #context: SmallContext;
  readonly #known = new Map<KNode, Lowered>();
  /** Shared memory of 16-bit floats holds float32 where that fits. */
  readonly #wideShared: boolean;

  constructor(program: Program, caps: TargetCaps) {
    this.#program = program;
    this.#ends = endsOf(program);
    this.#caps = caps;
    // Only engines with float64 guarantee more of float32 than WGSL does.
    this.#context = { e: this.#e, caps, ieee: caps.dtypes.has('float64') };
    let bytes = 0;
    for (const n of program.body)
      if (n.op === 'SHARED')
        bytes += n.arg.length * dtypeInfo[this.#isSmall(n) ? wideDtype(n.dtype) : n.dtype].bytes + 64;
    this.#wideShared = bytes <= caps.sharedBytes;
  }

  run(): Program {
    const { name, grid, group, groups, cost, transforms, params, scalars, body } = this.#program;
    this.#walk(0, body.length);
    return this.#b.build({
      name,
      grid,
      group,
      groups,
      cost,
      transforms,
      params: params.map((p) => this.#memory(p) as KNodeOf<'PARAM'>),
      scalars: scalars.map((dtype) => (computesIn(this.#caps, dtype) ? dtype : wideDtype(dtype))),
    });
  }

  #isSmall(n: KNode): boolean {
    return n.dtype !== 'void' && !computesIn(this.#caps, n.dtype);
  }

  #walk(from: number, to: number): void {
    const { body } = this.#program;
    for (let i = from; i < to; i++) {
      const n = body[i]!;
      switch (n.op) {
        case 'LOOP':
        case 'IF': {
          const end = this.#ends[i]!;
          if (n.op === 'IF') this.#b.ifThen(this.#plain(n.src[0]), () => this.#walk(i + 1, end));
          else
            this.#b.loop(
              this.#plain(n.src[0]),
              (counter) => {
                this.#known.set(n, counter);
                this.#walk(i + 1, end);
              },
              n.arg,
            );
          i = end;
          break;
        }
        case 'BARRIER':
          this.#b.barrier(n.arg?.part);
          break;
        case 'SUBGROUP':
          this.#known.set(n, this.#b.subgroup(n.arg.op, this.#plain(n.src[0])));
          break;
        case 'STORE':
          this.#store(n);
          break;
        case 'ATOMIC':
          this.#atomic(n);
          break;
        default: {
          const made = this.#lower(n);
          if (!(made instanceof SmallValue)) keepBounds(n, made);
          this.#known.set(n, made);
        }
      }
    }
  }

  /** The new form of a source. Pure leaves may be missing from the body. */
  #of(n: KNode | undefined): Lowered {
    const known = this.#known.get(n!);
    if (known !== undefined) return known;
    const made = this.#lower(n!);
    this.#known.set(n!, made);
    return made;
  }

  /** A source in a dtype that the engine computes in. */
  #plain(n: KNode | undefined): KNode {
    return this.#of(n) as KNode;
  }

  #memory(mem: KNode): KNode {
    return this.#plain(mem);
  }

  /** True for memory of a small dtype that holds its values in the wide dtype. */
  #isWide(mem: KNode): boolean {
    return mem.op === 'REG' || (mem.op === 'SHARED' && this.#wideShared);
  }

  #lower(n: KNode): Lowered {
    const e = this.#e;
    const small = this.#isSmall(n);
    const dtype = n.dtype as DType;
    const held = (mem: KNode): DType =>
      !small ? dtype : this.#isWide(mem) ? wideDtype(dtype) : storageDtype(this.#caps, dtype);
    switch (n.op) {
      case 'PARAM':
        return e.param(n.arg.slot, held(n), n.arg.access, n.arg.length, n.arg.fewer);
      case 'SHARED':
        return this.#b.shared(n.arg.name, held(n), n.arg.length);
      case 'REG':
        return this.#b.reg(n.arg.name, held(n), n.lanes, n.arg.length);
      case 'SCALAR':
        if (!small) break;
        return new SmallValue(this.#context, dtype, e.scalar(n.arg.slot, wideDtype(dtype)), false);
      case 'CONST':
        if (!small) break;
        return SmallValue.constant(this.#context, dtype, n.arg.value as number, n.lanes);
      case 'LOAD': {
        if (small) return this.#smallLoad(n);
        const [mem, index, gate, alt] = n.src;
        return this.#b.load(
          this.#memory(mem),
          this.#plain(index),
          n.lanes,
          gate && this.#plain(gate),
          alt && this.#plain(alt),
          n.arg,
        );
      }
    }
    const src = n.src.map((s) => this.#of(s));
    if (small || src.some((s) => s instanceof SmallValue)) return this.#small(n, src);
    // Known bounds of an index may hold only within a condition (keepBounds), so they must not simplify the condition itself.
    if (isArithmetic(n.op) && (dtype === 'bool' || dtype === 'int32'))
      return e.intern(n.op, dtype, n.lanes, src as KNode[]);
    return remake(e, n, src as KNode[]);
  }

  /** A node with a small dtype, or with sources of one. */
  #small(n: KNode, src: readonly Lowered[]): Lowered {
    const e = this.#e;
    const dtype = n.dtype as DType;
    const [first] = src as readonly [Lowered];
    switch (n.op) {
      case 'CAST':
        if (!this.#isSmall(n)) return e.cast((first as SmallValue).exact, dtype);
        return first instanceof SmallValue ? first.castTo(dtype) : fromWide(this.#context, dtype, first);
      case 'BITCAST':
        return first instanceof SmallValue
          ? SmallValue.ofBits(this.#context, dtype, first.bits())
          : e.bitcast(first, dtype);
      case 'VEC':
      case 'LANE':
        return SmallValue.combine(src as SmallValue[], (parts) => remake(e, n, parts));
    }
    if (!isArithmetic(n.op)) throw new Error(`[legalize] ${n.op} has no place in a program`);
    const [, b, c] = src as readonly SmallValue[];
    if (src.length === 1) return smallUnary(n.op as UnaryOp, first as SmallValue);
    if (src.length === 2) return smallBinary(n.op as BinaryOp, first as SmallValue, b!);
    return smallTernary(e, n.op as TernaryOp, first, b!, c!);
  }

  #smallLoad(n: KNodeOf<'LOAD'>): SmallValue {
    const e = this.#e;
    const dtype = n.dtype;
    const [mem, index, gate, alt] = n.src;
    const memory = this.#memory(mem);
    const at = this.#plain(index);
    if (gate === undefined) return this.#loaded(mem, dtype, this.#b.load(memory, at, n.lanes));
    const open = this.#plain(gate);
    const other = this.#of(alt) as SmallValue;
    // A literal alternative is loaded in its memory form; any other one is selected afterwards.
    const held = this.#isWide(mem) ? (other.fits ? other.exact : null) : other.raw;
    if (held !== null) return this.#loaded(mem, dtype, this.#b.load(memory, at, n.lanes, open, held));
    const value = this.#loaded(mem, dtype, this.#b.load(memory, at, n.lanes, open));
    return smallTernary(e, 'WHERE', e.splat(open, n.lanes), value, other);
  }

  /** A value read from memory of a small dtype. */
  #loaded(mem: KNode, dtype: DType, value: KNode): SmallValue {
    return this.#isWide(mem)
      ? new SmallValue(this.#context, dtype, value, true)
      : SmallValue.stored(this.#context, dtype, value);
  }

  #store(n: KNodeOf<'STORE'>): void {
    const [mem, index, value, gate] = n.src;
    const memory = this.#memory(mem);
    const v = this.#of(value);
    const held = !(v instanceof SmallValue) ? v : this.#isWide(mem) ? v.exact : v.held(memory.dtype as DType);
    this.#b.store(memory, this.#plain(index), held, gate && this.#plain(gate));
  }

  #atomic(n: KNodeOf<'ATOMIC'>): void {
    const [mem, index, value, gate] = n.src;
    if (this.#isSmall(mem))
      throw new Error(`[legalize] ATOMIC ${n.arg.op} on ${mem.dtype}: atomics need elements of four bytes`);
    this.#b.atomic(n.arg.op, this.#memory(mem), this.#plain(index), this.#plain(value), gate && this.#plain(gate));
  }
}

/** Carries the known bounds of an index over to its new form. */
function keepBounds(from: KNode, to: KNode): void {
  if (from.dtype === 'int32' && to.dtype === 'int32' && to.op !== 'CONST') assumeBounds(to, lowOf(from), highOf(from));
}
