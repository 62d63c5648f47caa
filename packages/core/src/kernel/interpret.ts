/**
 * The reference interpreter: what a program means.
 *
 * Groups run one after another; the threads of a group run in turns, each up to the next barrier. Slow on purpose: every
 * access is checked (interpret-memory.ts) and every operation rounds by the contract (interpret-values.ts).
 */
import type { DType, TypedArray } from '../shape/dtype.ts';
import { type Accessor, type Cells, PrivateCells, TensorCells } from './interpret-memory.ts';
import { evalBinary, evalCast, evalTernary, evalUnary, toDType, type Value } from './interpret-values.ts';
import type { BinaryOp, KNode, KNodeOf, Program, TernaryOp, UnaryOp } from './ir.ts';
import { reinterpret } from './reinterpret.ts';

/** A value of a register: one number per lane, or the number itself where there is one lane. */
type Lanes = Value | readonly Value[];

interface Compiled {
  readonly program: Program;
  /** Position of each node in the body. */
  readonly at: ReadonlyMap<KNode, number>;
  /** For LOOP and IF the position of their end; for ENDLOOP that of its LOOP. */
  readonly jump: Int32Array;
}

/** Runs a program on host arrays, one per PARAM slot, and numbers, one per SCALAR slot. */
export function interpret(program: Program, buffers: readonly TypedArray[], scalars: readonly Value[] = []): void {
  const compiled = compile(program);
  const tensors = new Map<number, Cells>();
  for (const p of program.params) {
    const { slot, access, length } = p.arg;
    const array = buffers[slot];
    if (!array) throw new Error(`[interpret] ${program.name}: no buffer for parameter ${slot}`);
    tensors.set(slot, new TensorCells(`parameter ${slot}`, array, p.dtype as DType, length, access !== 'read'));
  }
  const [gx, gy, gz] = program.grid;
  let number = 0;
  for (let z = 0; z < gz; z++) {
    for (let y = 0; y < gy; y++) {
      for (let x = 0; x < gx; x++) runGroup(compiled, tensors, scalars, [x, y, z], number++);
    }
  }
}

function compile(program: Program): Compiled {
  const at = new Map<KNode, number>();
  const jump = new Int32Array(program.body.length);
  const open: number[] = [];
  program.body.forEach((n, i) => {
    at.set(n, i);
    if (n.op === 'LOOP' || n.op === 'IF') open.push(i);
    else if (n.op === 'ENDLOOP' || n.op === 'ENDIF') {
      const start = open.pop();
      if (start === undefined) throw new Error(`[interpret] ${program.name}: ${n.op} without a beginning`);
      jump[start] = i;
      jump[i] = start;
    }
  });
  return { program, at, jump };
}

function runGroup(
  compiled: Compiled,
  tensors: ReadonlyMap<number, Cells>,
  scalars: readonly Value[],
  group: number[],
  id: number,
): void {
  const [sx, sy, sz] = compiled.program.group;
  const shared = new Map<KNode, Cells>();
  const threads: Thread[] = [];
  for (let z = 0; z < sz; z++) {
    for (let y = 0; y < sy; y++) {
      for (let x = 0; x < sx; x++) {
        threads.push(
          new Thread(compiled, tensors, shared, scalars, group, [x, y, z], { group: id, thread: threads.length }),
        );
      }
    }
  }
  for (let epoch = 1; ; epoch++) {
    const stops = threads.map((t) => t.run(epoch));
    const first = stops[0] as number;
    if (stops.some((s) => s !== first)) {
      throw new Error(`[interpret] ${compiled.program.name}: threads of group ${id} wait at different barriers`);
    }
    if (first < 0) return;
  }
}

class Thread {
  readonly #c: Compiled;
  readonly #tensors: ReadonlyMap<number, Cells>;
  readonly #shared: Map<KNode, Cells>;
  readonly #regs = new Map<KNode, Cells>();
  readonly #scalars: readonly Value[];
  readonly #group: number[];
  readonly #local: number[];
  readonly #who: { readonly group: number; readonly thread: number };
  readonly #values: Lanes[];
  readonly #limits: number[] = [];
  #pc = 0;

  constructor(
    compiled: Compiled,
    tensors: ReadonlyMap<number, Cells>,
    shared: Map<KNode, Cells>,
    scalars: readonly Value[],
    group: number[],
    local: number[],
    who: { readonly group: number; readonly thread: number },
  ) {
    this.#c = compiled;
    this.#tensors = tensors;
    this.#shared = shared;
    this.#scalars = scalars;
    this.#group = group;
    this.#local = local;
    this.#who = who;
    this.#values = new Array(compiled.program.body.length);
  }

  /** Runs to the next barrier and gives its position, or -1 at the end. */
  run(epoch: number): number {
    const { body } = this.#c.program;
    const by: Accessor = { ...this.#who, epoch };
    while (this.#pc < body.length) {
      const here = this.#pc++;
      const n = body[here] as KNode;
      switch (n.op) {
        case 'LOOP': {
          const limit = Number(this.#one(n.src[0]));
          this.#limits[here] = limit;
          this.#values[here] = 0;
          if (limit <= 0) this.#pc = (this.#c.jump[here] as number) + 1;
          break;
        }
        case 'ENDLOOP': {
          const start = this.#c.jump[here] as number;
          const next = Number(this.#values[start]) + 1;
          this.#values[start] = next;
          if (next < (this.#limits[start] as number)) this.#pc = start + 1;
          break;
        }
        case 'IF':
          if (!this.#one(n.src[0])) this.#pc = (this.#c.jump[here] as number) + 1;
          break;
        case 'ENDIF':
          break;
        case 'BARRIER':
          return here;
        case 'STORE':
          this.#store(n, by);
          break;
        case 'ATOMIC':
          this.#atomic(n, by);
          break;
        default:
          this.#values[here] = this.#value(n, by);
      }
    }
    return -1;
  }

  #of(n: KNode | undefined): Lanes {
    const at = n === undefined ? undefined : this.#c.at.get(n);
    const value = at === undefined ? undefined : this.#values[at];
    if (value === undefined)
      throw new Error(`[interpret] ${this.#c.program.name}: ${n?.op} is used before it has a value`);
    return value;
  }

  #one(n: KNode | undefined): Value {
    const value = this.#of(n);
    if (typeof value === 'object') throw new Error(`[interpret] ${n?.op}: a vector where a scalar is expected`);
    return value;
  }

  #lane(n: KNode | undefined, lane: number): Value {
    const value = this.#of(n);
    return typeof value === 'object' ? (value[lane] as Value) : value;
  }

  #each(lanes: number, f: (lane: number) => Value): Lanes {
    if (lanes === 1) return f(0);
    return Array.from({ length: lanes }, (_, lane) => f(lane));
  }

  #cells(memory: KNode): Cells {
    const found =
      memory.op === 'PARAM' ? this.#tensors.get(memory.arg.slot) : (this.#shared.get(memory) ?? this.#regs.get(memory));
    if (found) return found;
    if (memory.op !== 'SHARED' && memory.op !== 'REG')
      throw new Error(`[interpret] ${memory.op} is no memory of this program`);
    const made = new PrivateCells(memory.arg.name, memory.dtype as DType, memory.arg.length * memory.lanes);
    (memory.op === 'SHARED' ? this.#shared : this.#regs).set(memory, made);
    return made;
  }

  #store(n: KNodeOf<'STORE'>, by: Accessor): void {
    const [memory, index, value, gate] = n.src as [KNode, KNode, KNode, KNode?];
    if (gate && !this.#one(gate)) return;
    // A REG holds whole vectors at each index; other memory counts elements.
    const start = Number(this.#one(index)) * (memory.op === 'REG' ? memory.lanes : 1);
    const cells = this.#cells(memory);
    for (let lane = 0; lane < value.lanes; lane++) cells.write(start + lane, this.#lane(value, lane), by, false);
  }

  #atomic(n: KNodeOf<'ATOMIC'>, by: Accessor): void {
    const [memory, index, value, gate] = n.src as [KNode, KNode, KNode, KNode?];
    if (gate && !this.#one(gate)) return;
    const cells = this.#cells(memory);
    const at = Number(this.#one(index));
    const combine = { add: 'ADD', max: 'MAX', min: 'MIN', or: 'OR' } as const;
    const old = cells.read(at, by);
    cells.write(at, evalBinary(combine[n.arg.op], memory.dtype as DType, old, this.#one(value)), by, true);
  }

  #load(n: KNodeOf<'LOAD'>, by: Accessor): Lanes {
    const [memory, index, gate, alt] = n.src as [KNode, KNode, KNode?, KNode?];
    if (gate && !this.#one(gate)) return this.#each(n.lanes, (lane) => (alt ? this.#lane(alt, lane) : 0));
    const start = Number(this.#one(index)) * (memory.op === 'REG' ? memory.lanes : 1);
    const cells = this.#cells(memory);
    return this.#each(n.lanes, (lane) => cells.read(start + lane, by));
  }

  #value(n: KNode, by: Accessor): Lanes {
    const dtype = n.dtype as DType;
    const [a, b, c] = n.src;
    switch (n.op) {
      case 'CONST':
        return this.#each(n.lanes, () => toDType(dtype, n.arg.value));
      case 'SCALAR':
        return toDType(dtype, this.#scalars[n.arg.slot] as Value);
      case 'SPECIAL':
        return (n.arg.kind === 'group' ? this.#group : this.#local)[n.arg.axis] as number;
      case 'PARAM':
      case 'SHARED':
      case 'REG':
        return 0;
      case 'LOAD':
        return this.#load(n, by);
      case 'VEC':
        return this.#each(n.lanes, (lane) => this.#one(n.src.length === 1 ? a : n.src[lane]));
      case 'LANE':
        return this.#lane(a, n.arg.lane);
      case 'IOTA':
        return this.#each(n.lanes, (lane) => lane);
      case 'CAST':
        return this.#each(n.lanes, (lane) => evalCast(a?.dtype as DType, dtype, this.#lane(a, lane)));
      case 'BITCAST':
        return this.#each(n.lanes, (lane) => reinterpret(a?.dtype as DType, dtype, this.#lane(a, lane)));
      case 'RANGE':
      case 'REDUCE':
      case 'STAGE':
        throw new Error(`[interpret] ${n.op} belongs to loop nests: lower the kernel with linearize first`);
      default:
        break;
    }
    const operand = a?.dtype as DType;
    return this.#each(n.lanes, (lane) => {
      if (c)
        return evalTernary(n.op as TernaryOp, dtype, this.#lane(a, lane), this.#lane(b, lane), this.#lane(c, lane));
      if (b) return evalBinary(n.op as BinaryOp, operand, this.#lane(a, lane), this.#lane(b, lane));
      return evalUnary(n.op as UnaryOp, operand, this.#lane(a, lane));
    });
  }
}
