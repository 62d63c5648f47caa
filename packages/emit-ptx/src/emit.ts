/**
 * The walk over a program: order, values, blocks. Every value is a list of operands, one for each lane.
 *
 * Blocks become labels and branches, and names follow the order of the program, so equal programs give equal text.
 */
import {
  type KNode,
  type KOp,
  type KNodeOf,
  type KValue,
  type Operands,
  type Program,
  type Uses,
  lowOf,
  usesOf,
} from '@polygrad/core/kernel';
import { divisorOf, foldedValues, identifier } from '@polygrad/core/kernel/emitters';
import { type Addressed, Addresses, layShared, sharedName, type SharedLayout, splitIndex } from './addresses.ts';
import { choose, operation } from './arithmetic.ts';
import { bitcast, cast } from './casts.ts';
import { bitsType, bytesOf, isHalf, literal, memoryType, registerOf } from './dtypes.ts';
import { type DType, type PtxKernel, PtxError, type PtxParam, type PtxScalar, type PtxTarget } from './kernel.ts';
import { atomic, load, registers, store } from './memory.ts';
import { copy, fragment, multiply, packedCount } from './matrix.ts';
import { capabilityFor } from './target.ts';
import { barrier, reduceWarp, special } from './threads.ts';
import { Writer } from './writer.ts';

type Value = readonly string[];

/** A loop or branch that is open. */
interface Block {
  readonly end: string;
  /** The jump back of a loop. */
  readonly turn: (() => void) | null;
}

/** What a node is made from: of an index with a constant only what is added to it. */
const operandsOf: Operands = (n) => {
  if (n.op === 'COPY') {
    const [to, index, from, source, ...rest] = n.src;
    return [...rootOf(to, index), ...rootOf(from, source), ...rest];
  }
  if (n.op === 'FRAGMENT') return rootOf(n.src[0], n.src[1]);
  if (n.op !== 'LOAD' && n.op !== 'STORE' && n.op !== 'ATOMIC') return n.src;
  const [mem, index, ...rest] = n.src;
  return [...rootOf(mem, index), ...rest];
};

function rootOf(mem: KNode, index: KNode | undefined): readonly KNode[] {
  if ((mem.op !== 'PARAM' && mem.op !== 'SHARED') || index === undefined) return [];
  const { root } = splitIndex(mem, index);
  return root === null ? [] : [root];
}

/** Operations that always write a new register. */
const writing: ReadonlySet<KOp> = new Set<KOp>([
  'ADD',
  'SUB',
  'MUL',
  'DIV',
  'MAX',
  'MIN',
  'FMA',
  'MULADD',
  'SQRT',
  'MATRIX',
]);

class Emitter {
  readonly #program: Program;
  readonly #w: Writer;
  readonly #uses: Uses;
  /** Values whose only user comes before anything that changes what they read. */
  readonly #folded: ReadonlySet<KNode>;
  readonly #addresses: Addresses;
  readonly #values = new Map<KNode, Value>();
  readonly #registers = new Map<KNode, readonly Value[]>();
  /** Factors of tiles as MATRIX takes them. */
  readonly #packed = new Map<KNode, readonly string[]>();
  readonly #divisors = new Map<KNode, number>();
  readonly #blocks: Block[] = [];

  constructor(program: Program, w: Writer, shared: SharedLayout) {
    this.#program = program;
    this.#w = w;
    this.#uses = usesOf(program.body, operandsOf);
    this.#folded = foldedValues(program, this.#uses);
    this.#addresses = new Addresses(w, shared, (n) => this.#scalar(n));
  }

  run(): void {
    for (const n of this.#program.body) {
      this.#w.node = n;
      if (n.dtype === 'int32' && n.lanes === 1) this.#divisors.set(n, divisorOf(n, this.#divisors));
      this.#statement(n);
    }
    this.#w.node = null;
  }

  #value(n: KNode | undefined): Value {
    return this.#values.get(n as KNode) ?? this.#w.refuse(`${n?.op} is used before it is defined`);
  }

  #scalar(n: KNode | undefined): string {
    return this.#value(n)[0]!;
  }

  #gate(n: KNode | undefined): string | null {
    return n === undefined ? null : this.#scalar(n);
  }

  #statement(n: KNode): void {
    const w = this.#w;
    switch (n.op) {
      case 'PARAM':
      case 'SHARED':
        return;
      case 'REG':
        this.#registers.set(
          n,
          Array.from({ length: n.arg.length }, () => registers(w, n.dtype, n.lanes)),
        );
        return;
      case 'LOOP':
        this.#loop(n);
        return;
      case 'IF': {
        const end = w.label();
        w.line(`@!${this.#scalar(n.src[0])} bra ${end};`);
        this.#open({ end, turn: null });
        return;
      }
      case 'ENDLOOP':
      case 'ENDIF':
        this.#close();
        return;
      case 'BARRIER':
        barrier(w, this.#program, n.arg);
        return;
      case 'STORE':
        this.#store(n);
        return;
      case 'COPY': {
        const [to, index, from, source, gate] = n.src;
        const [into, out] = [this.#addressed(to), this.#addressed(from)];
        const at = this.#addresses.at(out, source as KNode)(0);
        copy(w, this.#addresses.at(into, index)(0), at, n.arg.lanes * bytesOf(into.dtype), this.#gate(gate));
        return;
      }
      case 'COMMIT':
        w.line('cp.async.commit_group;');
        return;
      case 'WAIT':
        w.line(`cp.async.wait_group ${n.arg.pending};`);
        return;
      case 'FRAGMENT':
        if (this.#uses.has(n)) this.#fragment(n);
        return;
      case 'ATOMIC': {
        const [mem, index, value, gate] = n.src;
        if (value.lanes !== 1) w.refuse(`ATOMIC on ${value.lanes} lanes: atomics are scalar`);
        const address = this.#addresses.at(this.#addressed(mem), index);
        atomic(w, n.arg.op, this.#addressed(mem), address, this.#scalar(value), this.#gate(gate));
        return;
      }
      default:
        if (this.#uses.has(n)) this.#values.set(n, this.#lower(n));
    }
  }

  // --- blocks

  #open(block: Block): void {
    this.#blocks.push(block);
    this.#addresses.open();
  }

  #close(): void {
    const block = this.#blocks.pop();
    if (block === undefined) this.#w.refuse('a block ends that did not begin');
    block.turn?.();
    this.#w.place(block.end);
    this.#addresses.close();
  }

  #loop(n: KNodeOf<'LOOP'>): void {
    const w = this.#w;
    const [extent] = n.src;
    const limit = this.#scalar(extent);
    const counter = w.op('r', 'mov.b32', '0');
    const [start, end] = [w.label(), w.label()];
    if (lowOf(extent) < 1) w.line(`@${w.op('p', 'setp.le.s32', limit, '0')} bra ${end};`);
    w.place(start);
    this.#values.set(n, [counter]);
    const turn = (): void => {
      w.line(`add.s32 ${counter}, ${counter}, 1;`);
      w.line(`@${w.op('p', 'setp.lt.s32', counter, limit)} bra ${start};`);
    };
    this.#open({ end, turn });
  }

  // --- memory

  #addressed(mem: KNode): Addressed {
    if (mem.op === 'PARAM' || mem.op === 'SHARED') return mem;
    return this.#w.refuse(`${mem.op} has no addresses`);
  }

  #cell(mem: KNodeOf<'REG'>, index: KNode): Value {
    if (index.op !== 'CONST') this.#w.refuse('registers need a constant index');
    return this.#registers.get(mem)?.[Number(index.arg.value)] ?? this.#w.refuse('a register outside its memory');
  }

  #store(n: KNodeOf<'STORE'>): void {
    const w = this.#w;
    const [mem, index, from, open] = n.src;
    const value = this.#value(from);
    const gate = this.#gate(open);
    if (mem.op === 'REG') {
      const cells = this.#cell(mem, index);
      // A product of tiles has been written there.
      if (from.op === 'MATRIX' && gate === null && value.every((x, i) => x === cells[i])) return;
      // What was computed just now for this register alone is computed there.
      if (gate === null && writing.has(from.op) && this.#folded.has(from) && w.retarget(value, cells)) return;
      const when = gate === null ? '' : `@${gate} `;
      const type = bitsType[registerOf[mem.dtype]];
      // Lanes may change places among the registers that are written.
      const kept = value.map((x, i) =>
        cells.includes(x) && x !== cells[i] ? w.op(registerOf[mem.dtype], `mov.${type}`, x) : x,
      );
      for (const [i, cell] of cells.entries()) w.line(`${when}mov.${type} ${cell}, ${kept[i]};`);
      return;
    }
    const to = this.#addressed(mem);
    store(w, to, this.#addresses.at(to, index), value, this.#divisors.get(index) ?? 1, gate);
  }

  #load(n: KNodeOf<'LOAD'>): Value {
    const w = this.#w;
    const [mem, index, open, other] = n.src;
    const gate = this.#gate(open);
    const otherwise = other === undefined ? [] : this.#value(other);
    if (mem.op === 'REG') {
      const kind = registerOf[mem.dtype];
      const cells = this.#cell(mem, index);
      // Its only user reads the register itself.
      const user = this.#program.body[this.#uses.get(n)?.at ?? -1];
      if (gate === null && this.#folded.has(n) && user !== undefined && writing.has(user.op)) return cells;
      return cells.map((cell, i) =>
        gate === null
          ? w.op(kind, `mov.${bitsType[kind]}`, cell)
          : choose(w, mem.dtype, gate, cell, otherwise[Math.min(i, otherwise.length - 1)]!),
      );
    }
    const from = this.#addressed(mem);
    const address = this.#addresses.at(from, index);
    return load(w, from, address, n.lanes, this.#divisors.get(index) ?? 1, gate, otherwise);
  }

  // --- tiles of matrices

  #fragment(n: KNodeOf<'FRAGMENT'>): void {
    const w = this.#w;
    const [from, index] = n.src;
    const mem = from.op === 'SHARED' ? from : w.refuse(`FRAGMENT of ${from.op}: it reads group memory`);
    const packed = fragment(w, this.#program, n, (key, spread) => this.#addresses.spread(mem, index, key, spread));
    this.#packed.set(n, packed);
    const isFactor = (x: KNode): boolean => x.op === 'MATRIX' && x.src.lastIndexOf(n) < 2;
    if (this.#program.body.every((x) => !x.src.includes(n as KValue) || isFactor(x))) return;
    // Somebody asks for elements.
    this.#values.set(
      n,
      packed.flatMap((x) => {
        if (n.dtype === 'float32') return [w.op('f', 'mov.b32', x)];
        const [low, high] = [w.fresh('h'), w.fresh('h')];
        w.line(`mov.b32 {${low}, ${high}}, ${x};`);
        return [low, high];
      }),
    );
  }

  #factor(n: KNode): readonly string[] {
    const known = this.#packed.get(n);
    if (known !== undefined) return known;
    const w = this.#w;
    const value = this.#value(n);
    return Array.from({ length: packedCount(n) }, (_, i) =>
      n.dtype === 'float32'
        ? w.op('r', 'mov.b32', value[i]!)
        : w.op('r', 'mov.b32', `{${value[2 * i]}, ${value[2 * i + 1]}}`),
    );
  }

  #matrix(n: KNodeOf<'MATRIX'>): Value {
    const w = this.#w;
    const [a, b, c] = n.src;
    const [x, y, sum] = [this.#factor(a), this.#factor(b), this.#value(c)];
    const added = sum.map((s) => (s.startsWith('%') ? s : w.op('f', 'mov.b32', s)));
    const user = this.#program.body[this.#uses.get(n)?.at ?? -1];
    const isKept = user?.op === 'STORE' && user.src[0].op === 'REG' && user.src.length === 3 && this.#folded.has(n);
    const to = isKept
      ? this.#cell(user.src[0] as KNodeOf<'REG'>, user.src[1])
      : Array.from({ length: 4 }, () => w.fresh('f'));
    multiply(w, n.arg.tile, a.dtype, to, x, y, added);
    return to;
  }

  // --- values

  #lower(n: KNode): Value {
    const w = this.#w;
    const lanes = <T>(make: (i: number) => T): T[] => Array.from({ length: n.lanes }, (_, i) => make(i));
    switch (n.op) {
      case 'CONST': {
        const text = literal(w, n.dtype, n.arg.value);
        return lanes(() => text);
      }
      case 'SPECIAL':
        return [special(w, this.#program, n.arg.kind, n.arg.axis)];
      case 'SCALAR':
        return [this.#parameter(n)];
      case 'MATRIX':
        return this.#matrix(n);
      case 'SUBGROUP':
        return [reduceWarp(w, this.#program, n.arg.op, n.dtype, this.#scalar(n.src[0]))];
      case 'IOTA':
        return lanes((i) => `${i}`);
      case 'VEC': {
        const scalars = n.src.map((s) => this.#scalar(s));
        return lanes((i) => (scalars.length === 1 ? scalars[0] : scalars[i]) as string);
      }
      case 'LANE':
        return [this.#value(n.src[0])[n.arg.lane] ?? w.refuse('a lane outside its vector')];
      case 'LOAD':
        return this.#load(n);
      case 'CAST':
        return shared(this.#value(n.src[0]), (x) => cast(w, n.src[0].dtype, n.dtype, x));
      case 'BITCAST':
        return shared(this.#value(n.src[0]), (x) => bitcast(w, n.src[0].dtype, n.dtype, x));
      default: {
        const args = n.src.map((s) => this.#value(s));
        const of = (i: number): string[] => args.map((a) => (a.length === 1 ? a[0] : a[i]) as string);
        const made = new Map<string, string>();
        return lanes((i) => {
          // Lanes with the same operands have the same value.
          const own = of(i);
          const key = own.join();
          const value = made.get(key) ?? operation(w, n, own);
          made.set(key, value);
          return value;
        });
      }
    }
  }

  #parameter({ dtype, arg }: KNodeOf<'SCALAR'>): string {
    const w = this.#w;
    return w.once(`scalar ${arg.slot}`, () => {
      const given = scalarDType(dtype);
      const held = w.op(registerOf[given], `ld.param.${memoryType[given]}`, `[s${arg.slot}]`);
      return given === dtype ? held : cast(w, given, dtype, held);
    });
  }
}

/** What a number is given as. */
function scalarDType(dtype: DType): DType {
  return dtype === 'bool' ? 'uint8' : isHalf(dtype) ? 'float32' : dtype;
}

/** The results for each lane, computed once for lanes that are equal. */
function shared(value: Value, make: (x: string) => string): Value {
  const made = new Map<string, string>();
  return value.map((x) => {
    const known = made.get(x) ?? make(x);
    made.set(x, known);
    return known;
  });
}

/** The most group memory that may be declared with a length. */
const mostStatic = 48 * 1024;
/** The most bytes of parameters. */
const mostParameters = 4096;
/** Groups along the second and third axis of a grid, by CUDA. */
const gridLimit = 65535;

/**
 * Threads that a multiprocessor is to hold of a program with many sums, by the registers of four bytes that it declares. These are 128, 170 or 256
 * registers for each. With fewer NVIDIA's assembler spills some.
 */
const threadsTogether: readonly (readonly [declared: number, threads: number])[] = [
  [66, 512],
  [112, 384],
  [Number.POSITIVE_INFINITY, 256],
];

/** Registers of four bytes from which on a program has many sums; small groups that read by themselves what they multiply have more with the most. */
const manySums = 32;
const small = { group: 128, sums: 64, threads: 384 } as const;

/**
 * Groups that a multiprocessor is to hold of a program with tiles of matrices or many sums; null: as many as the assembler likes. Left alone with those
 * it spills some registers for more groups.
 */
function togetherFor({ group, body }: Program): number | null {
  const declared = body.reduce(
    (sum, n) => (n.op === 'REG' ? sum + (n.arg.length * n.lanes * bytesOf(n.dtype)) / 4 : sum),
    0,
  );
  const byMatrices = body.some((n) => n.op === 'MATRIX');
  if (!byMatrices && declared < manySums) return null;
  const own = group[0] * group[1] * group[2];
  const [, most] = threadsTogether.find(([registers]) => declared <= registers)!;
  const threads = !byMatrices && own <= small.group && declared >= small.sums ? Math.min(most, small.threads) : most;
  return Math.max(1, Math.floor(threads / own));
}

/**
 * The program as PTX, one thread of the card for each thread of a group.
 *
 * @throws PtxError for programs PTX cannot express, and for targets that are too old
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'float32', 'write', 1);
 * p.store(y, 0, p.e.f32(1));
 * emitPtx(p.build({ name: 'one' }), { computeCapability: 80, isa: '7.0' }).entry; // 'kernel_one'
 */
export function emitPtx(program: Program, target: PtxTarget): PtxKernel {
  const capability = capabilityFor(target);
  const { grid, group } = program;
  if (grid[1] > gridLimit || grid[2] > gridLimit)
    throw new PtxError(`a grid of ${grid.join(' x ')} groups: at most ${gridLimit} along the second and third axis`);
  const w = new Writer(capability);
  const memory = layShared(program);
  new Emitter(program, w, memory).run();
  const { params, scalars, declared, parameterBytes } = parametersOf(program);
  if (parameterBytes > mostParameters)
    throw new PtxError(`${parameterBytes} bytes of parameters: at most ${mostParameters}`);
  const entry = `kernel_${identifier(program.name)}`;
  const isDynamic = memory.bytes > mostStatic;
  const together = togetherFor(program);
  const head = [
    `.version ${target.isa}`,
    `.target sm_${capability}`,
    '.address_size 64',
    ...(isDynamic ? [`.extern .shared .align 16 .b8 ${sharedName}[];`] : []),
    `.visible .entry ${entry}(${declared.length === 0 ? ')' : ''}`,
    ...declared.map((text, i) => `  ${text}${i === declared.length - 1 ? '' : ','}`),
    ...(declared.length === 0 ? [] : [')']),
    `.reqntid ${group.join(', ')}`,
    ...(together === null ? [] : [`.minnctapersm ${together}`]),
    '{',
    ...(memory.bytes > 0 && !isDynamic ? [`  .shared .align 16 .b8 ${sharedName}[${memory.bytes}];`] : []),
  ];
  const body = w.finish();
  return {
    text: `${[...head, ...body.map((l) => l.text), '  ret;', '}'].join('\n')}\n`,
    entry,
    params,
    scalars,
    parameterBytes,
    sharedBytes: memory.bytes,
    dynamicSharedBytes: isDynamic ? memory.bytes : 0,
    grid,
    group,
    lines: [...head.map(() => null), ...body.map((l) => l.node), null, null],
  };
}

/** The block of parameters: addresses in the order of the program's parameters, then scalars by slot, each at a multiple of its size. */
function parametersOf(program: Program): {
  readonly params: readonly PtxParam[];
  readonly scalars: readonly PtxScalar[];
  readonly declared: readonly string[];
  readonly parameterBytes: number;
} {
  const declared: string[] = [];
  let at = 0;
  const params = program.params.map(({ dtype, arg: { slot, access } }): PtxParam => {
    declared.push(`.param .u64 .ptr .global .align 16 p${slot}`);
    at += 8;
    return { slot, access, dtype, bytes: bytesOf(dtype), at: at - 8 };
  });
  const scalars = program.scalars.map((own, slot): PtxScalar => {
    const dtype = scalarDType(own);
    const bytes = bytesOf(dtype);
    declared.push(`.param .${memoryType[dtype]} s${slot}`);
    at = Math.ceil(at / bytes) * bytes + bytes;
    return { slot, dtype, bytes, at: at - bytes };
  });
  return { params, scalars, declared, parameterBytes: at };
}
