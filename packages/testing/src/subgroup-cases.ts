/**
 * Programs whose threads reduce over their group, by subgroups where the engine has them: groups that are one subgroup, groups of several.
 * What they give is computed here, not by the interpreter: it must not depend on which threads form a subgroup.
 */
import type { EngineCaps, TypedArray } from '@polygrad/core/functions';
import { type KNode, ProgramBuilder, type ReduceOp } from '@polygrad/core/kernel';
import { acrossThreads, combined, hostArrays, isArg, oneSubgroup, type State } from '@polygrad/core/internals';
import type { ProgramCase } from './program-case.ts';

type Held = 'float32' | 'int32' | 'uint32';

const groups = 4;

/** Numbers whose sums and products are exact: powers of two, and for maxima NaN, infinities and zeros of both signs. */
function numbers(op: ReduceOp, dtype: Held, length: number): TypedArray {
  const data = new hostArrays[dtype](length) as Float32Array;
  const threads = length / groups;
  for (let i = 0; i < length; i++) {
    const group = Math.floor(i / threads);
    if (op === 'prod') data[i] = dtype === 'float32' ? (i % 7 === 0 ? 2 : i % 7 === 1 ? 0.5 : -1) : (i % 5) + 1;
    else if (op === 'sum' && dtype !== 'float32') data[i] = Math.imul(i + 1, 0x3789abcd);
    else data[i] = ((i * 37) % 101) - (dtype === 'uint32' ? 0 : 50);
    if (dtype !== 'float32' || op === 'sum' || op === 'prod') continue;
    // Group 1 has NaN, twice; group 2 zeros and an infinity; in group 3 the best comes twice.
    if (group === 1 && (i % threads === 3 || i % threads === threads - 1)) data[i] = Number.NaN;
    if (group === 2) data[i] = i % threads === 1 ? (op.endsWith('max') ? -Infinity : Infinity) : i % 2 ? 0 : -0;
    if (group === 3 && i % threads > threads - 3) data[i] = op.endsWith('max') ? 1e30 : -1e30;
  }
  return data;
}

/** The reduction of some numbers, in the plainest way. */
function expectedOf(op: ReduceOp, dtype: Held, values: readonly number[]): number {
  const best = (): number =>
    values.some(Number.isNaN) ? Number.NaN : op.endsWith('max') ? Math.max(...values) : Math.min(...values);
  if (isArg(op)) return values.findIndex((x) => x === best() || (Number.isNaN(x) && Number.isNaN(best())));
  if (op === 'max' || op === 'min') return best();
  const plain = op === 'sum' ? (x: number, y: number) => x + y : (x: number, y: number) => x * y;
  const whole = op === 'sum' ? (x: number, y: number) => (x + y) | 0 : Math.imul;
  return values.reduce(dtype === 'float32' ? plain : whole);
}

function groupCase(op: ReduceOp, dtype: Held, threads: number, caps: EngineCaps): ProgramCase {
  const length = groups * threads;
  const b = new ProgramBuilder();
  const { e } = b;
  const made = isArg(op) ? 'int32' : dtype;
  const x = e.param(0, dtype, 'read', length);
  const y = e.param(1, made, 'write', length);
  const local = e.special('local', 0, threads);
  const at = e.add(e.mul(e.special('group', 0, groups), e.i32(threads)), local);
  const isNan = (v: KNode): KNode => e.not(e.eq(v, v));
  const combine = ([v, i]: State, [w, j]: State): State => {
    const [p, q] = [v, w] as readonly [KNode, KNode];
    if (op !== 'argmax' && op !== 'argmin') return [combined(e, op, p, q)];
    const ahead = e.or(op === 'argmax' ? e.lt(p, q) : e.lt(q, p), e.and(isNan(q), e.not(isNan(p))));
    const tie = e.or(e.eq(p, q), e.and(isNan(p), isNan(q)));
    const take = e.or(ahead, e.and(tie, e.lt(j!, i!)));
    return [e.where(take, q, p), e.where(take, j!, i!)];
  };
  const value = b.load(x, at);
  const mine = isArg(op) ? [value, local] : [value];
  const whole = acrossThreads(b, { op, mine, combine }, threads, caps);
  b.store(y, at, whole[isArg(op) ? 1 : 0]!);
  const program = b.build({ name: `group_${op}`, grid: [groups, 1, 1], group: [threads, 1, 1] });
  const data = numbers(op, dtype, length);
  const want = new hostArrays[made](length) as Float32Array;
  for (let g = 0; g < groups; g++) {
    const own = Array.from(data.subarray(g * threads, (g + 1) * threads) as Float32Array);
    want.fill(expectedOf(op, dtype, own), g * threads, (g + 1) * threads);
  }
  const name = `${op} of ${dtype} in groups of ${threads}`;
  return { name, program, data: [data, new hostArrays[made](length)], scalars: [], expected: [data, want] };
}

/**
 * Every reduction, by groups of one subgroup and of several.
 *
 * @example
 * [...groupCases(createReferenceEngine({ simt: true }).caps)].length > 0; // true
 */
export function* groupCases(caps: EngineCaps): Generator<ProgramCase> {
  const sizes = new Set([oneSubgroup(caps) ?? 8, 64]);
  for (const threads of sizes) {
    for (const op of ['sum', 'prod', 'max', 'min', 'argmax', 'argmin'] as const)
      for (const dtype of ['float32', 'int32', 'uint32'] as const) yield groupCase(op, dtype, threads, caps);
  }
}
