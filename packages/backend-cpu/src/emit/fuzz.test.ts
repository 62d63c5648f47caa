/** Random programs against the reference engine: nested blocks, registers, shared memory, gates, vectors, values used again. */
import { type KNode, type KOp, legalize, ProgramBuilder, printProgram, type Program } from '@polygrad/core/kernel';
import { createReferenceEngine } from '@polygrad/core/testing';
import { describe, expect, it } from 'vitest';
import { createCpuEngine } from '../engine.ts';

/** Elements of every memory, per group where it is written. */
const length = 37;
const groups = 3;
type Kind = 'float32' | 'int32' | 'bool' | 'int8' | 'uint16' | 'float16' | 'bfloat16' | 'int64';
type Extra = Exclude<Kind, 'float32' | 'int32' | 'bool'>;
const extras: readonly Extra[] = ['int8', 'uint16', 'float16', 'bfloat16', 'int64'];

/** A small generator of repeatable numbers. */
function numbers(seed: number): (n: number) => number {
  let state = seed * 2654435761 + 12345;
  return (n) => {
    state = Math.imul(state ^ (state >>> 15), 2246822519);
    state = Math.imul(state ^ (state >>> 13), 3266489917);
    state ^= state >>> 16;
    return (state >>> 0) % n;
  };
}

class Generator {
  readonly b = new ProgramBuilder();
  readonly random: (n: number) => number;
  readonly reads: KNode[];
  readonly writes: KNode[];
  readonly regs: KNode[];
  readonly shared: KNode[];
  /** Values made in open blocks, innermost last. */
  scopes: KNode[][] = [[]];

  /** The dtype that some of the numbers have, besides the common ones. */
  readonly extra: Extra;

  constructor(seed: number) {
    this.random = numbers(seed);
    this.extra = extras[seed % extras.length]!;
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
      for (let k = 0; k < (r.arg as { length: number }).length; k++)
        this.b.store(r, k, e.constant(r.dtype as Kind, k, r.lanes));
    }
    this.b.loop(length, (i) => {
      this.b.store(this.shared[0]!, i, e.cast(i, 'float32'));
      this.b.store(this.shared[1]!, i, i);
      this.b.store(this.shared[2]!, i, e.cast(i, this.extra));
    });
    this.scopes[0]!.push(e.special('group', 0, groups), e.scalar(0, 'float32'), e.scalar(1, 'int32'));
  }

  program(): Program {
    this.block(0);
    return this.b.build({
      name: 'fuzz',
      grid: [groups, 1, 1],
      params: [...this.reads, ...this.writes].sort((a, b) => slotOf(a) - slotOf(b)) as never,
      scalars: ['float32', 'int32'],
    });
  }

  private block(depth: number): void {
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

  private storeReg(): void {
    const r = this.regs[this.random(this.regs.length)]!;
    this.b.store(
      r,
      this.random((r.arg as { length: number }).length),
      this.value(r.dtype as Kind, r.lanes),
      this.random(6) === 0 ? this.value('bool', 1) : undefined,
    );
  }

  private storeMemory(): void {
    const mem = [...this.writes, ...this.shared][this.random(6)]!;
    const lanes = [1, 1, 4, 8][this.random(4)]!;
    this.b.store(
      mem,
      this.index(lanes, mem),
      this.value(mem.dtype as Kind, lanes),
      this.random(4) === 0 ? this.value('bool', 1) : undefined,
    );
  }

  /** A value from 0 to below `n`. */
  private bounded(x: KNode, n: number): KNode {
    const { e } = this.b;
    return e.irem(e.and(x, e.i32(0x7fffffff)), e.i32(n));
  }

  /** An index at which `lanes` elements lie inside the memory, in this group's part where groups write. */
  private index(lanes: number, mem: KNode): KNode {
    const { e } = this.b;
    let base = this.bounded(this.value('int32', 1), length - lanes - 2);
    if (this.writes.includes(mem)) base = e.add(base, e.mul(e.special('group', 0, groups), e.i32(length)));
    return this.random(2) === 0 ? e.add(base, e.i32(this.random(3))) : base;
  }

  /** Some value: one made before, or a new one. */
  private value(kind: Kind, lanes: number, depth = 0): KNode {
    const { e } = this.b;
    const known = this.scopes.flat().filter((v) => v.dtype === kind && v.lanes === lanes);
    if (known.length > 0 && this.random(3) === 0) return known[this.random(known.length)]!;
    const v =
      depth > 3
        ? e.constant(kind, kind === 'bool' ? this.random(2) : this.random(20) - 5, lanes)
        : this.fresh(kind, lanes, depth + 1);
    this.scopes[this.scopes.length - 1]!.push(v);
    return v;
  }

  /** A vector of elements at small distances from a common index. */
  private neighbours(kind: Kind, lanes: number): KNode {
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

  private fresh(kind: Kind, lanes: number, depth: number): KNode {
    const { e } = this.b;
    const sub = (k: Kind, n = lanes): KNode => this.value(k, n, depth);
    const pick = <T>(xs: readonly T[]): T => xs[this.random(xs.length)]!;
    switch (this.random(8)) {
      case 0:
        return e.constant(kind, kind === 'bool' ? this.random(2) : this.random(20) - 5, lanes);
      case 1: {
        const gate = this.random(3) === 0 ? sub('bool', 1) : undefined;
        const mem = pick([...this.reads, ...this.writes, ...this.shared].filter((m) => m.dtype === kind));
        const alt = gate !== undefined && this.random(2) === 0 ? sub(kind, lanes) : undefined;
        return this.b.load(mem, this.index(lanes, mem), lanes, gate, alt);
      }
      case 2: {
        const r = this.regs.filter((x) => x.dtype === kind && x.lanes === lanes);
        if (r.length === 0) break;
        const from = pick(r);
        return this.b.load(from, this.random((from.arg as { length: number }).length));
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
      const of = pick(['float32', this.extra] as const);
      return e.binary(pick(['LT', 'LE', 'EQ'] as const), sub(of), sub(of));
    }
    if (kind === this.extra) return this.small(lanes, sub);
    if (kind === 'int32') {
      if (this.random(4) === 0) return e.cast(sub(pick(['float32', this.extra] as const)), 'int32');
      return e.binary(
        pick(['ADD', 'SUB', 'MUL', 'MAX', 'MIN', 'AND', 'OR', 'XOR'] as const),
        sub('int32'),
        sub('int32'),
      );
    }
    if (this.random(4) === 0) return e.cast(sub(pick(['int32', this.extra] as const)), 'float32');
    if (this.random(4) === 0) return e.unary(pick(['NEG', 'ABS', 'FLOOR', 'SQRT'] as const), sub('float32'));
    return e.binary(pick(['ADD', 'SUB', 'MUL', 'MAX', 'MIN', 'DIV'] as const), sub('float32'), sub('float32'));
  }

  /** A new value of the further dtype. */
  private small(_: number, sub: (k: Kind) => KNode): KNode {
    const { e } = this.b;
    const pick = <T>(xs: readonly T[]): T => xs[this.random(xs.length)]!;
    const kind = this.extra;
    if (this.random(4) === 0) return e.cast(sub(pick(['int32', 'float32'] as const)), kind);
    if (this.random(4) === 0) return e.unary(pick(['NEG', 'ABS'] as const), sub(kind));
    const float = kind === 'float16' || kind === 'bfloat16';
    const ops = float
      ? (['ADD', 'SUB', 'MUL', 'DIV', 'MAX', 'MIN'] as const)
      : (['ADD', 'SUB', 'MUL', 'AND', 'OR', 'XOR', 'MAX', 'MIN'] as const);
    return e.binary(pick(ops), sub(kind), sub(kind));
  }
}

/** Elements of a further dtype: small numbers, some of them large. */
function bytesFor(dtype: Extra, count: number, factor = 1): Uint8Array | Int8Array | Uint16Array | BigInt64Array {
  const at = (i: number): number => factor * (i % 5 === 0 ? i * 37 : (i % 11) - 3);
  switch (dtype) {
    case 'int8':
      return Int8Array.from({ length: count }, (_, i) => at(i));
    case 'int64':
      return BigInt64Array.from({ length: count }, (_, i) => BigInt(at(i)) << BigInt(i % 7 === 0 ? 40 : 0));
    default:
      // As bits of 16-bit floats: anything but NaN.
      return Uint16Array.from({ length: count }, (_, i) => Math.abs(at(i)) * 61);
  }
}

function valuesOf(dtype: Extra, bytes: Uint8Array): (number | bigint)[] {
  switch (dtype) {
    case 'int8':
      return Array.from(new Int8Array(bytes.buffer));
    case 'int64':
      return Array.from(new BigInt64Array(bytes.buffer));
    case 'uint16':
      return Array.from(new Uint16Array(bytes.buffer));
    default: {
      // NaN has many patterns.
      const top = dtype === 'float16' ? 0x7c00 : 0x7f80;
      return Array.from(new Uint16Array(bytes.buffer), (x) => ((x & 0x7fff) > top ? Number.NaN : x));
    }
  }
}

function slotOf(n: KNode): number {
  return n.op === 'PARAM' ? n.arg.slot : -1;
}

describe('random programs', () => {
  it('give what the reference engine gives', () => {
    const cpu = createCpuEngine({ threads: 1 });
    const reference = createReferenceEngine();
    const ops = new Set<KOp>();
    for (let seed = 1; seed <= 120; seed++) {
      const generator = new Generator(seed);
      const program = generator.program();
      for (const n of program.body) ops.add(n.op);
      const results = [cpu, reference].map((engine) => {
        const data = [
          Float32Array.from({ length }, (_, i) => (i % 7 === 0 ? -i : i / 3)),
          Int32Array.from({ length }, (_, i) => i * 3 - 20),
          Uint8Array.from({ length }, (_, i) => (i % 3) & 1),
          new Float32Array(groups * length),
          new Int32Array(groups * length),
          bytesFor(generator.extra, length),
          bytesFor(generator.extra, groups * length, 0),
        ];
        const bindings = data.map((d) => {
          const bytes =
            d.length *
            (engine.caps.storageBytes?.bool !== undefined && d instanceof Uint8Array ? 4 : d.BYTES_PER_ELEMENT);
          const binding = { buffer: engine.alloc(bytes), offset: 0, bytes };
          engine.upload(binding, d);
          return binding;
        });
        const kernels = engine.compile([legalize(program, engine.caps)]);
        engine.submit([{ kind: 'dispatch', kernel: kernels[0]!, bindings, scalars: [1.25, 7] }]);
        const out = [3, 4, 6].map((k) => engine.downloadSync!(bindings[k]!, new Uint8Array(bindings[k]!.bytes)));
        engine.release(kernels);
        for (const x of bindings) engine.free(x.buffer);
        return [
          ...new Float32Array(out[0]!.buffer),
          ...new Int32Array(out[1]!.buffer),
          ...valuesOf(generator.extra, out[2]!),
        ];
      });
      const at = results[0]!.findIndex((x, i) => !Object.is(x, results[1]![i]));
      if (at >= 0)
        expect.fail(
          `seed ${seed}: element ${at} is ${results[0]![at]}, expected ${results[1]![at]}\n${printProgram(program)}`,
        );
    }
    expect(ops.size).toBeGreaterThan(25);
    cpu.dispose();
    reference.dispose();
  });
});
