/**
 * Direct evaluation of loop nests: what a LoopKernel means, one element at a time, without lowering.
 *
 * Independent of linearize and of programs; tests compare the two. Slow by design. Values are JS numbers (bigint for 64-bit
 * integers) rounded to their dtype after every operation; float reductions run in float64 and round once, at the end.
 */
import { type DType, isFloat, type TypedArray } from '../shape/dtype.ts';
import { getElement, type Literal, normalize, setElement } from '../shape/host.ts';
import { dtypeRange, foldBinary, foldCast, foldUnary } from '../ir/simplify/fold.ts';
import { FreeRanges, ownRanges, type Range } from '../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel } from '../ir/ir.ts';
import type { BinaryOp, UnaryOp } from '../ir/operations.ts';
import { isArithmetic } from '../ir/node.ts';
import { evalUnary } from './values.ts';

type Env = ReadonlyMap<Range, number>;

/**
 * Runs the kernel on host arrays, one per slot. All stores see the memory as it was before.
 *
 * @example
 * const e = new Exprs();
 * const x = e.param(0, 'float32', 'read', 2);
 * const y = e.param(1, 'float32', 'write', 2);
 * const i = e.range(2);
 * const store = e.store(y, i, e.mul(e.load(x, i), 2));
 * const kernel: LoopKernel = { name: 'twice', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
 * const result = new Float32Array(2);
 * evaluateNest(kernel, [Float32Array.of(1, 2), result]);
 * result; // [2, 4]
 */
export function evaluateNest(
  kernel: LoopKernel,
  buffers: readonly TypedArray[],
  scalars: readonly Literal[] = [],
): void {
  const run = new Evaluation(buffers, scalars);
  const writes: [KNodeOf<'PARAM'>, number, Literal][] = [];
  for (const { store, ranges } of kernel.stores) {
    const [mem, index, value, gate] = store.src as readonly [KNodeOf<'PARAM'>, KNode, KNode, KNode?];
    run.over(ranges, new Map(), (env) => {
      if (gate !== undefined && run.value(gate, env) === 0) return;
      writes.push([mem, run.index(mem, index, env), run.value(value, env)]);
    });
  }
  for (const [mem, at, v] of writes) setElement(buffers[mem.arg.slot]!, mem.dtype, at, v);
}

class Evaluation {
  readonly #buffers: readonly TypedArray[];
  readonly #scalars: readonly Literal[];
  readonly #free = new FreeRanges();
  /** Values of REDUCEs by the values of their free ranges: recomputing them would be exponential in their nesting. */
  readonly #reduced = new Map<KNode, Map<string, Literal>>();

  constructor(buffers: readonly TypedArray[], scalars: readonly Literal[]) {
    this.#buffers = buffers;
    this.#scalars = scalars;
  }

  over(ranges: readonly Range[], env: Env, body: (env: Env) => void): void {
    const [first, ...rest] = ranges;
    if (first === undefined) {
      body(env);
      return;
    }
    const limit = first.src[0];
    const n = limit === undefined ? first.arg.extent : Number(this.value(limit, env));
    for (let i = 0; i < n; i++) this.over(rest, new Map(env).set(first, i), body);
  }

  index(mem: KNodeOf<'PARAM'>, index: KNode, env: Env): number {
    const at = this.value(index, env) as number;
    if (at < 0 || at >= mem.arg.length)
      throw new Error(`[evaluateNest] index ${at} of PARAM ${mem.arg.slot} with ${mem.arg.length} elements`);
    return at;
  }

  value(n: KNode, env: Env): Literal {
    const at = (i: number): Literal => this.value(n.src[i]!, env);
    const dtype = n.dtype as DType;
    switch (n.op) {
      case 'CONST':
        return n.arg.value;
      case 'SCALAR':
        return normalize(dtype, this.#scalars[n.arg.slot]!);
      case 'RANGE': {
        const v = env.get(n);
        if (v === undefined) throw new Error('[evaluateNest] a range is used outside its loop');
        return v;
      }
      case 'LOAD': {
        const [mem, index, gate] = n.src;
        if (gate !== undefined && this.value(gate, env) === 0) return at(3);
        if (mem.op === 'STAGE') return this.#staged(mem, this.value(index, env) as number, env);
        const p = mem as KNodeOf<'PARAM'>;
        const x = getElement(this.#buffers[p.arg.slot]!, dtype, this.index(p, index, env));
        return typeof x === 'boolean' ? Number(x) : x;
      }
      case 'REDUCE': {
        let known = this.#reduced.get(n);
        if (known === undefined) this.#reduced.set(n, (known = new Map()));
        const key = this.#free
          .of(n)
          .map((r) => env.get(r))
          .join();
        let value = known.get(key);
        if (value === undefined) known.set(key, (value = this.#reduce(n, env)));
        return value;
      }
      case 'CAST':
        return foldCast(n.src[0]?.dtype, dtype, at(0));
      case 'WHERE':
        return at(0) !== 0 ? at(1) : at(2);
      case 'FMA':
      case 'MULADD':
        return normalize(dtype, Number(at(0)) * Number(at(1)) + Number(at(2)));
      default: {
        if (!isArithmetic(n.op)) throw new Error(`[evaluateNest] no meaning for ${n.op}`);
        const from = n.src[0]?.dtype as DType;
        if (n.src.length === 1) {
          const x = at(0);
          return foldUnary(n.op as UnaryOp, from, x) ?? evalUnary(n.op as UnaryOp, from, x);
        }
        return foldBinary(n.op as BinaryOp, from, at(0), at(1)) ?? 0;
      }
    }
  }

  #staged(stage: KNode, flat: number, env: Env): Literal {
    const inner = new Map(env);
    let rest = flat;
    for (const r of [...ownRanges(stage)].reverse()) {
      inner.set(r, rest % r.arg.extent);
      rest = Math.floor(rest / r.arg.extent);
    }
    return this.value(stage.src[0], inner);
  }

  #reduce(n: KNodeOf<'REDUCE'>, env: Env): Literal {
    const value = n.src[0];
    const dtype = value.dtype;
    const { op } = n.arg;
    const wide: DType = isFloat(dtype) ? 'float64' : dtype.endsWith('64') ? dtype : 'int32';
    const flip = op === 'min' || op === 'argmin';
    let best: Literal =
      op === 'sum' ? 0 : op === 'prod' ? 1 : isFloat(dtype) ? (flip ? 1 / 0 : -1 / 0) : dtypeRange[wide][flip ? 1 : 0];
    if (wide.endsWith('64') && wide !== 'float64') best = Number.isFinite(best) ? BigInt(best) : lowest(wide, flip);
    let position = 0;
    let winner = 0;
    this.over(ownRanges(n), env, (inner) => {
      const x = foldCast(dtype, wide, this.value(value, inner));
      const better = isNan(x) || (flip ? x < best : x > best);
      if (op === 'sum' || op === 'prod') best = foldBinary(op === 'sum' ? 'ADD' : 'MUL', wide, best, x)!;
      else if (better && !isNan(best)) [best, winner] = [x, position];
      position++;
    });
    return op === 'argmax' || op === 'argmin' ? winner : foldCast(wide, n.dtype, best);
  }
}

/** The end of a 64-bit range that every number replaces. */
function lowest(dtype: DType, flip: boolean): bigint {
  if (dtype === 'uint64') return flip ? 2n ** 64n - 1n : 0n;
  return flip ? 2n ** 63n - 1n : -(2n ** 63n);
}

function isNan(x: Literal): boolean {
  return typeof x === 'number' && Number.isNaN(x);
}
