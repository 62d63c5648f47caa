/**
 * A program as a list of steps, one per node of its body, for the reference interpreter. Every value has a place in one array of
 * registers, lane by lane.
 */
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import type { MatrixPlaces } from './matrix.ts';
import type { Accessor, Cells } from './memory.ts';
import {
  binaryFunction,
  castFunction,
  reinterpretFunction,
  ternaryFunction,
  toDType,
  unaryFunction,
  type Value,
} from './values.ts';
import type { KNode, KNodeOf, Program } from '../ir/ir.ts';
import type { BinaryOp, TernaryOp, UnaryOp } from '../ir/operations.ts';
import { elementOf, matrixThreads } from '../ir/matrix.ts';
import { isArithmetic } from '../ir/node.ts';
import { blocksOf } from '../ir/uses.ts';
import { endsOf } from '../ir/block-ends.ts';
import { verifyProgram } from '../ir/verify/verify.ts';

/** State of one thread. */
export interface ThreadState {
  readonly values: Value[];
  /** Memory by number (`CompiledProgram.memories`). */
  readonly cells: readonly Cells[];
  readonly scalars: readonly Value[];
  readonly group: readonly number[];
  readonly local: readonly number[];
  /** Values of SPECIAL, one element each. */
  readonly subgroup: readonly number[];
  readonly subgroups: readonly number[];
  readonly leader: readonly number[];
  readonly by: Accessor;
  /** Pending asynchronous copies of the thread, in batches; the last batch is still open. */
  copies: (() => void)[][];
}

type Step = (t: ThreadState) => void;

/** The runner (interpret.ts) executes control flow; everything else is a step. */
export type Instruction =
  | { readonly kind: 'step'; readonly step: Step }
  | {
      readonly kind: 'loop';
      readonly counter: number;
      readonly limit: number;
      readonly limitAt: number;
      readonly end: number;
    }
  | { readonly kind: 'endloop'; readonly counter: number; readonly limitAt: number; readonly start: number }
  | { readonly kind: 'if'; readonly condition: number; readonly end: number }
  | { readonly kind: 'endif' }
  | { readonly kind: 'barrier'; readonly part: number | null }
  | { readonly kind: 'matrix'; readonly places: MatrixPlaces }
  | { readonly kind: 'subgroup'; readonly to: number; readonly from: number; readonly combine: Combine };

type Combine = (x: Value, y: Value) => Value;

export interface CompiledProgram {
  readonly instructions: readonly Instruction[];
  readonly memories: readonly (KNodeOf<'PARAM'> | KNodeOf<'SHARED'> | KNodeOf<'REG'>)[];
  readonly registers: number;
}

const known = new WeakMap<Program, CompiledProgram>();

/** The steps of a program; verifies it the first time. */
export function compileProgram(program: Program): CompiledProgram {
  let compiled = known.get(program);
  if (compiled === undefined) {
    verifyProgram(program);
    compiled = new Compiler().run(program);
    known.set(program, compiled);
  }
  return compiled;
}

function checkAligned(op: string, index: number, unit: number): void {
  if (index % unit !== 0) throw new Error(`[interpret] ${op} at element ${index}: it goes by ${unit}`);
}

class Compiler {
  readonly #places = new Map<KNode, number>();
  readonly #memories: CompiledProgram['memories'][number][] = [];
  readonly #memoryNumbers = new Map<KNode, number>();
  #registers = 0;

  run(program: Program): CompiledProgram {
    const instructions: Instruction[] = [];
    const [around, ends] = [blocksOf(program), endsOf(program)];
    for (const [at, n] of program.body.entries()) {
      switch (n.op) {
        case 'LOOP': {
          const limit = this.#place(n.src[0]);
          const counter = this.#reserve(n);
          instructions.push({ kind: 'loop', counter, limit, limitAt: this.#registers++, end: ends[at]! });
          break;
        }
        case 'IF':
          instructions.push({ kind: 'if', condition: this.#place(n.src[0]), end: ends[at]! });
          break;
        case 'ENDLOOP': {
          const start = around[at]!;
          const { counter, limitAt } = instructions[start] as Extract<Instruction, { kind: 'loop' }>;
          instructions.push({ kind: 'endloop', counter, limitAt, start });
          break;
        }
        case 'ENDIF':
          instructions.push({ kind: 'endif' });
          break;
        case 'BARRIER':
          instructions.push({ kind: 'barrier', part: n.arg?.part ?? null });
          break;
        case 'SUBGROUP': {
          const op = ({ sum: 'ADD', prod: 'MUL', max: 'MAX', min: 'MIN' } as const)[n.arg.op];
          const combine = binaryFunction(op, n.dtype);
          instructions.push({ kind: 'subgroup', from: this.#place(n.src[0]), to: this.#reserve(n), combine });
          break;
        }
        case 'MATRIX': {
          const [a, b, c] = n.src.map((s) => this.#place(s)) as [number, number, number];
          const places = { tile: n.arg.tile, dtype: n.src[0].dtype as DType, a, b, c, to: this.#reserve(n) };
          instructions.push({ kind: 'matrix', places });
          break;
        }
        default:
          instructions.push({ kind: 'step', step: this.#step(n) });
      }
    }
    return { instructions, memories: this.#memories, registers: this.#registers };
  }

  #reserve(n: KNode): number {
    const place = this.#registers;
    this.#places.set(n, place);
    this.#registers += n.lanes;
    return place;
  }

  #place(n: KNode | undefined): number {
    return this.#places.get(n!)!;
  }

  #step(n: KNode): Step {
    const { lanes, dtype } = n;
    switch (n.op) {
      case 'PARAM':
      case 'SHARED':
      case 'REG':
        this.#memoryNumbers.set(n, this.#memories.length);
        this.#memories.push(n);
        return () => {};
      case 'STORE':
        return this.#store(n);
      case 'ATOMIC':
        return this.#atomic(n);
      case 'LOAD':
        return this.#load(n);
      case 'FRAGMENT':
        return this.#fragment(n);
      case 'COPY':
        return this.#copy(n);
      case 'COMMIT':
        return ({ copies }) => {
          copies.push([]);
        };
      case 'WAIT': {
        const { pending } = n.arg;
        return ({ copies }) => {
          while (copies.length > pending + 1) for (const copy of copies.shift()!) copy();
        };
      }
      case 'CONST': {
        const [value, to] = [toDType(dtype as DType, n.arg.value), this.#reserve(n)];
        return ({ values }) => {
          for (let i = 0; i < lanes; i++) values[to + i] = value;
        };
      }
      case 'SCALAR': {
        const [{ slot }, to] = [n.arg, this.#reserve(n)];
        return ({ values, scalars }) => {
          values[to] = toDType(dtype as DType, scalars[slot]!);
        };
      }
      case 'SPECIAL': {
        const [{ kind, axis }, to] = [n.arg, this.#reserve(n)];
        return (t) => {
          t.values[to] = t[kind][axis]!;
        };
      }
      case 'VEC': {
        const from = n.src.map((s) => this.#place(s));
        const to = this.#reserve(n);
        return ({ values }) => {
          for (let i = 0; i < lanes; i++) values[to + i] = values[from[from.length === 1 ? 0 : i]!]!;
        };
      }
      case 'LANE': {
        const from = this.#place(n.src[0]) + n.arg.lane;
        const to = this.#reserve(n);
        return ({ values }) => {
          values[to] = values[from]!;
        };
      }
      case 'IOTA': {
        const to = this.#reserve(n);
        return ({ values }) => {
          for (let i = 0; i < lanes; i++) values[to + i] = i;
        };
      }
      default:
        return this.#value(n);
    }
  }

  /** Operations that work lane by lane. */
  #value(n: KNode): Step {
    const { lanes } = n;
    const [a, b, c] = n.src.map((s) => this.#place(s)) as [number, number, number];
    const from = n.src[0]?.dtype as DType;
    const dtype = n.dtype as DType;
    const to = this.#reserve(n);
    if (n.op === 'CAST' || n.op === 'BITCAST' || (isArithmetic(n.op) && n.src.length === 1)) {
      const f =
        n.op === 'CAST'
          ? castFunction(from, dtype)
          : n.op === 'BITCAST'
            ? reinterpretFunction(from, dtype)
            : unaryFunction(n.op as UnaryOp, from);
      return ({ values }) => {
        for (let i = 0; i < lanes; i++) values[to + i] = f(values[a + i]!);
      };
    }
    if (!isArithmetic(n.op))
      throw new Error(`[interpret] ${n.op} belongs to loop nests: lower the kernel with linearize first`);
    if (n.src.length === 2) {
      const f = binaryFunction(n.op as BinaryOp, from);
      return ({ values }) => {
        for (let i = 0; i < lanes; i++) values[to + i] = f(values[a + i]!, values[b + i]!);
      };
    }
    const f = ternaryFunction(n.op as TernaryOp, dtype);
    return ({ values }) => {
      for (let i = 0; i < lanes; i++) values[to + i] = f(values[a + i]!, values[b + i]!, values[c + i]!);
    };
  }

  /** Number of the memory, and elements per index: a REG holds whole vectors at each index, other memory counts elements. */
  #memory(mem: KNode): { readonly number: number; readonly stride: number } {
    return { number: this.#memoryNumbers.get(mem)!, stride: mem.op === 'REG' ? mem.lanes : 1 };
  }

  #load(n: KNodeOf<'LOAD'>): Step {
    const [mem, index, gate, alt] = n.src;
    const { number, stride } = this.#memory(mem);
    const [at, open] = [this.#place(index), gate === undefined ? -1 : this.#place(gate)];
    const other = alt === undefined ? -1 : this.#place(alt);
    const [to, { lanes }] = [this.#reserve(n), n];
    const step = n.arg?.step ?? 1;
    return ({ values, cells, by }) => {
      if (open >= 0 && values[open] === 0) {
        for (let i = 0; i < lanes; i++) values[to + i] = values[other + i]!;
        return;
      }
      const first = (values[at] as number) * stride;
      const from = cells[number]!;
      for (let i = 0; i < lanes; i++) values[to + i] = from.read(first + i * step, by);
    };
  }

  #fragment(n: KNodeOf<'FRAGMENT'>): Step {
    const [mem, index] = n.src;
    const { number } = this.#memory(mem);
    const [at, to] = [this.#place(index), this.#reserve(n)];
    const { part, across, along } = n.arg;
    const unit = 16 / dtypeInfo[n.dtype].bytes;
    const offsets = Array.from({ length: matrixThreads }, (_, thread) =>
      Array.from({ length: n.lanes }, (_, lane) => {
        const [row, column] = elementOf(part, n.dtype, thread, lane);
        return part === 'a' ? row * across + column * along : column * across + row * along;
      }),
    );
    return ({ values, cells, by }) => {
      const first = values[at] as number;
      checkAligned('FRAGMENT', first, unit);
      const own = offsets[(by.thread - 1) % matrixThreads]!;
      for (let i = 0; i < own.length; i++) values[to + i] = cells[number]!.read(first + own[i]!, by);
    };
  }

  #copy(n: KNodeOf<'COPY'>): Step {
    const [to, index, from, source, gate] = n.src;
    const [into, out] = [this.#memory(to).number, this.#memory(from).number];
    const [at, start, open] = [this.#place(index), this.#place(source), gate === undefined ? -1 : this.#place(gate)];
    const unit = n.arg.lanes;
    return ({ values, cells, by, copies }) => {
      const [first, read] = [values[at] as number, values[start] as number];
      checkAligned('COPY', first, unit);
      const isOpen = open < 0 || values[open] !== 0;
      if (isOpen) checkAligned('COPY', read, unit);
      const zero = to.dtype === 'int64' || to.dtype === 'uint64' ? 0n : 0;
      for (let i = 0; i < unit; i++) {
        cells[into]!.forget(first + i, by);
        const value = isOpen ? cells[out]!.read(read + i, by) : zero;
        copies[copies.length - 1]!.push(() => cells[into]!.write(first + i, value, by));
      }
    };
  }

  #store(n: KNodeOf<'STORE'>): Step {
    const [mem, index, value, gate] = n.src;
    const { number, stride } = this.#memory(mem);
    const [at, from, open] = [this.#place(index), this.#place(value), gate === undefined ? -1 : this.#place(gate)];
    const { lanes } = value;
    return ({ values, cells, by }) => {
      if (open >= 0 && values[open] === 0) return;
      const first = (values[at] as number) * stride;
      const to = cells[number]!;
      for (let i = 0; i < lanes; i++) to.write(first + i, values[from + i]!, by);
    };
  }

  #atomic(n: KNodeOf<'ATOMIC'>): Step {
    const [mem, index, value, gate] = n.src;
    const { number } = this.#memory(mem);
    const [at, from, open] = [this.#place(index), this.#place(value), gate === undefined ? -1 : this.#place(gate)];
    const ops = { add: 'ADD', max: 'MAX', min: 'MIN', or: 'OR' } as const;
    const combine = binaryFunction(ops[n.arg.op], mem.dtype);
    return ({ values, cells, by }) => {
      if (open >= 0 && values[open] === 0) return;
      cells[number]!.update(values[at] as number, by, (old) => combine(old, values[from]!));
    };
  }
}
