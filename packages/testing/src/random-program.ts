/** Random programs: nested blocks, registers, shared memory, gates, vectors, values used again. The same seed gives the same program. */
import { type KNode, type KNodeOf, type Program, ProgramBuilder } from '@polygrad/core/kernel';
import { hostArrays } from '@polygrad/core/internals';
import type { TypedArray } from '@polygrad/core/functions';
import type { ProgramCase } from './program-case.ts';

/** Elements of every memory, per group where it is written. */
const length = 37;
const groups = 3;
type Kind = 'float32' | 'int32' | 'bool' | 'int8' | 'uint16' | 'float16' | 'bfloat16' | 'int64' | 'uint32';
type Extra = Exclude<Kind, 'float32' | 'int32' | 'bool'>;
/** Dtypes a random program may use besides the common ones. */
export type RandomDType = Extra;
const allExtras: readonly Extra[] = ['int8', 'uint16', 'float16', 'bfloat16', 'int64'];

/** A small generator of repeatable numbers. */
export function numbers(seed: number): (n: number) => number {
  let state = seed * 2654435761 + 12345;
  return (n) => {
    state = Math.imul(state ^ (state >>> 15), 2246822519);
    state = Math.imul(state ^ (state >>> 13), 3266489917);
    state ^= state >>> 16;
    return (state >>> 0) % n;
  };
}

type Param = KNodeOf<'PARAM'>;
type Reg = KNodeOf<'REG'>;

class Generator {
  readonly b = new ProgramBuilder();
  readonly random: (n: number) => number;
  readonly reads: Param[];
  readonly writes: Param[];
  readonly regs: Reg[];
  readonly shared: KNodeOf<'SHARED'>[];
  /** Values made in open blocks, innermost last. */
  scopes: KNode[][] = [[]];

  /** The dtype that some of the numbers have, besides the common ones. */
  readonly extra: Extra;

  constructor(seed: number, extra: Extra) {
    this.random = numbers(seed);
    this.extra = extra;
    const { e } = this.b;
    this.reads = [
      e.param(0, 'float32', 'read', length),
      e.param(1, 'int32', 'read', length),
      e.param(2, 'bool', 'read', length),
      e.param(5, this.extra, 'read', length),
    ];
    this.writes = [
      e.param(3, 'float32', 'readwrite', groups * length),
      e.param(4, 'int32', 'readwrite', groups * length),
      e.param(6, this.extra, 'readwrite', groups * length),
    ];
    this.regs = [
      this.b.reg('f', 'float32', 1, 2),
      this.b.reg('v', 'float32', 4, 2),
      this.b.reg('i', 'int32', 1, 2),
      this.b.reg('w', 'int32', 8, 1),
      this.b.reg('x', this.extra, 1, 2),
      this.b.reg('y', this.extra, 8, 1),
    ];
    this.shared = [
      this.b.shared('s', 'float32', length),
      this.b.shared('t', 'int32', length),
      this.b.shared('u', this.extra, length),
    ];
    for (const r of this.regs) {
      for (let k = 0; k < r.arg.length; k++) this.b.store(r, k, e.constant(r.dtype as Kind, k, r.lanes));
    }
    this.b.loop(length, (i) => {
      for (const mem of this.shared) this.b.store(mem, i, e.cast(i, mem.dtype as Kind));
    });
    this.declare(e.special('group', 0, groups), e.scalar(0, 'float32'), e.scalar(1, 'int32'));
  }

  program(): Program {
    this.block(0);
    return this.b.build({
      name: 'fuzz',
      grid: [groups, 1, 1],
      params: [...this.reads, ...this.writes].sort((a, b) => a.arg.slot - b.arg.slot),
      scalars: ['float32', 'int32'],
    });
  }

  pick<T>(xs: readonly T[]): T {
    return xs[this.random(xs.length)]!;
  }

  declare(...values: KNode[]): void {
    this.scopes[this.scopes.length - 1]!.push(...values);
  }

  block(depth: number): void {
    this.scopes.push([]);
    const count = 3 + this.random(5);
    for (let s = 0; s < count; s++) {
      const what = this.random(10);
      if (what < 2 && depth < 3)
        this.b.loop(
          this.random(3) === 0 ? this.bounded(this.value('int32', 1), 4) : 1 + this.random(5),
          (i) => {
            this.scopes.push([i]);
            this.block(depth + 1);
            this.scopes.pop();
          },
          this.random(3) === 0 ? { unrollHint: true } : null,
        );
      else if (what === 2 && depth < 3) this.b.ifThen(this.value('bool', 1), () => this.block(depth + 1));
      else if (what < 5) this.storeReg();
      else this.storeMemory();
    }
    this.scopes.pop();
  }

  storeReg(): void {
    const r = this.pick(this.regs);
    this.b.store(
      r,
      this.random(r.arg.length),
      this.value(r.dtype as Kind, r.lanes),
      this.random(6) === 0 ? this.value('bool', 1) : undefined,
    );
  }

  storeMemory(): void {
    const mem = this.pick([...this.writes, ...this.shared]);
    const lanes = this.pick([1, 1, 4, 8]);
    this.b.store(
      mem,
      this.index(lanes, mem),
      this.value(mem.dtype as Kind, lanes),
      this.random(4) === 0 ? this.value('bool', 1) : undefined,
    );
  }

  /** A value from 0 to below `n`. */
  bounded(x: KNode, n: number): KNode {
    const { e } = this.b;
    return e.irem(e.and(x, e.i32(0x7fffffff)), e.i32(n));
  }

  /** An index at which `lanes` elements lie inside the memory, in this group's part where groups write. */
  index(lanes: number, mem: KNode): KNode {
    const { e } = this.b;
    let base = this.bounded(this.value('int32', 1), length - lanes - 2);
    if ((this.writes as readonly KNode[]).includes(mem))
      base = e.add(base, e.mul(e.special('group', 0, groups), e.i32(length)));
    return this.random(2) === 0 ? e.add(base, e.i32(this.random(3))) : base;
  }

  /** Some value: one made before, or a new one. */
  value(kind: Kind, lanes: number, depth = 0): KNode {
    const { e } = this.b;
    const known = this.scopes.flat().filter((v) => v.dtype === kind && v.lanes === lanes);
    if (known.length > 0 && this.random(3) === 0) return this.pick(known);
    const v =
      depth > 3
        ? e.constant(kind, kind === 'bool' ? this.random(2) : this.random(20) - 5, lanes)
        : this.fresh(kind, lanes, depth + 1);
    this.declare(v);
    return v;
  }

  /** A vector of elements at small distances from a common index. */
  neighbours(kind: Kind, lanes: number): KNode {
    const { e } = this.b;
    const reach = 4 * lanes - 4;
    const base = this.bounded(this.value('int32', 1), length - reach);
    const [stride, jitter] = [this.random(4), this.random(2)];
    const mem = this.reads.find((m) => m.dtype === kind)!;
    const loads = Array.from({ length: lanes }, (_, k) => {
      const at = Math.min(reach, k * stride + (jitter === 1 ? this.random(3) : 0));
      return this.b.load(mem, e.add(base, e.i32(at)));
    });
    return e.vec(loads);
  }

  fresh(kind: Kind, lanes: number, depth: number): KNode {
    const { e } = this.b;
    const sub = (k: Kind, n = lanes): KNode => this.value(k, n, depth);
    switch (this.random(8)) {
      case 0:
        return e.constant(kind, kind === 'bool' ? this.random(2) : this.random(20) - 5, lanes);
      case 1: {
        const gate = this.random(3) === 0 ? sub('bool', 1) : undefined;
        const mem = this.pick([...this.reads, ...this.writes, ...this.shared].filter((m) => m.dtype === kind));
        const alt = gate !== undefined && this.random(2) === 0 ? sub(kind, lanes) : undefined;
        return this.b.load(mem, this.index(lanes, mem), lanes, gate, alt);
      }
      case 2: {
        const r = this.regs.filter((x) => x.dtype === kind && x.lanes === lanes);
        if (r.length === 0) break;
        const from = this.pick(r);
        return this.b.load(from, this.random(from.arg.length));
      }
      case 3:
        return lanes === 1 ? e.lane(sub(kind, 4), this.random(4)) : e.splat(sub(kind, 1), lanes);
      case 4:
        return e.where(sub('bool'), sub(kind), sub(kind));
      case 5:
        if (lanes === 1) return sub(kind);
        if (kind !== 'bool' && this.random(2) === 0) return this.neighbours(kind, lanes);
        return e.vec(Array.from({ length: lanes }, () => sub(kind, 1)));
    }
    if (kind === 'bool') {
      const of = this.pick(['float32', this.extra] as const);
      return e.binary(this.pick(['LT', 'LE', 'EQ'] as const), sub(of), sub(of));
    }
    if (kind === this.extra) return this.small(sub);
    if (kind === 'int32') {
      if (this.random(4) === 0) return e.cast(sub(this.pick(['float32', this.extra] as const)), 'int32');
      return e.binary(
        this.pick(['ADD', 'SUB', 'MUL', 'MAX', 'MIN', 'AND', 'OR', 'XOR'] as const),
        sub('int32'),
        sub('int32'),
      );
    }
    if (this.random(4) === 0) return e.cast(sub(this.pick(['int32', this.extra] as const)), 'float32');
    if (this.random(4) === 0) return e.unary(this.pick(['NEG', 'ABS', 'FLOOR', 'SQRT'] as const), sub('float32'));
    return e.binary(this.pick(['ADD', 'SUB', 'MUL', 'MAX', 'MIN', 'DIV'] as const), sub('float32'), sub('float32'));
  }

  /** A new value of the further dtype. */
  small(sub: (k: Kind) => KNode): KNode {
    const { e } = this.b;
    const kind = this.extra;
    if (this.random(4) === 0) return e.cast(sub(this.pick(['int32', 'float32'] as const)), kind);
    if (this.random(4) === 0) return e.unary(this.pick(['NEG', 'ABS'] as const), sub(kind));
    const float = kind === 'float16' || kind === 'bfloat16';
    const ops = float
      ? (['ADD', 'SUB', 'MUL', 'DIV', 'MAX', 'MIN'] as const)
      : (['ADD', 'SUB', 'MUL', 'AND', 'OR', 'XOR', 'MAX', 'MIN'] as const);
    return e.binary(this.pick(ops), sub(kind), sub(kind));
  }
}

/** Elements of a further dtype: small numbers, some of them large. */
function elements(dtype: Extra, count: number): TypedArray {
  const at = (i: number): number => (i % 5 === 0 ? i * 37 : (i % 11) - 3);
  switch (dtype) {
    case 'int8':
      return Int8Array.from({ length: count }, (_, i) => at(i));
    case 'int64':
      return BigInt64Array.from({ length: count }, (_, i) => BigInt(at(i)) << BigInt(i % 7 === 0 ? 40 : 0));
    case 'uint32':
      return Uint32Array.from({ length: count }, (_, i) => at(i));
    default:
      // As bits of 16-bit floats: anything but NaN.
      return Uint16Array.from({ length: count }, (_, i) => Math.abs(at(i)) * 61);
  }
}

/**
 * A random program and its data. Besides float32, int32 and bool it uses one dtype of `extras`, by turns.
 *
 * @example
 * await comparePrograms(createReferenceEngine(), [randomProgram(7)]); // []
 */
export function randomProgram(seed: number, extras: readonly RandomDType[] = allExtras): ProgramCase {
  const generator = new Generator(seed, extras[seed % extras.length]!);
  const program = generator.program();
  const data: TypedArray[] = [
    Float32Array.from({ length }, (_, i) => (i % 7 === 0 ? -i : i / 3)),
    Int32Array.from({ length }, (_, i) => i * 3 - 20),
    Uint8Array.from({ length }, (_, i) => (i % 3) & 1),
    new Float32Array(groups * length),
    new Int32Array(groups * length),
    elements(generator.extra, length),
    new hostArrays[generator.extra](groups * length),
  ];
  return { name: `random program ${seed}`, program, data, scalars: [1.25, 7] };
}
