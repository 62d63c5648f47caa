/** Programs of several groups and threads: where each one is, memory shared in a group, barriers and atomics. */
import { type KArgs, type KNode, ProgramBuilder } from '@polygrad/core/kernel';
import type { DType, TypedArray } from '@polygrad/core/functions';
import { hostArrays } from '@polygrad/core/internals';
import type { ProgramCase } from './program-case.ts';

/** Every thread of a grid writes its position, all six numbers. */
function places(): ProgramCase {
  const [grid, group] = [[3, 2, 4] as const, [4, 2, 3] as const];
  const b = new ProgramBuilder();
  const { e } = b;
  const axes = [0, 1, 2] as const;
  const groups = axes.map((axis) => e.special('group', axis, grid[axis]));
  const locals = axes.map((axis) => e.special('local', axis, group[axis]));
  let number: KNode = e.i32(0);
  for (const axis of axes) number = e.add(e.mul(number, e.i32(grid[axis])), groups[axis]!);
  for (const axis of axes) number = e.add(e.mul(number, e.i32(group[axis])), locals[axis]!);
  const out = e.param(0, 'int32', 'write', 24 * 24 * 6);
  for (const [i, at] of [...groups, ...locals].entries()) b.store(out, e.add(e.mul(number, e.i32(6)), e.i32(i)), at);
  const program = b.build({ name: 'places', grid, group });
  return { name: 'places of threads', program, data: [new Int32Array(24 * 24 * 6)], scalars: [] };
}

/** Threads exchange numbers through group memory, twice. */
function exchange(dtype: DType): ProgramCase {
  const threads = 32;
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, dtype, 'read', 4 * threads);
  const y = e.param(1, dtype, 'write', 4 * threads);
  const shared = b.shared('row', dtype, threads);
  const [group, local] = [e.special('group', 0, 4), e.special('local', 0, threads)];
  const at = e.add(e.mul(group, e.i32(threads)), local);
  b.store(shared, local, b.load(x, at));
  b.barrier();
  b.loop(3, (i) => {
    const other = b.load(shared, e.irem(e.add(e.add(local, i), e.i32(5)), e.i32(threads)));
    b.barrier();
    b.store(shared, local, other);
    b.barrier();
  });
  b.store(y, at, b.load(shared, e.sub(e.i32(threads - 1), local)));
  const data = new hostArrays[dtype](4 * threads);
  const values = data as { [index: number]: number | bigint };
  for (let i = 0; i < data.length; i++) {
    const number = dtype === 'bool' ? (i * 7) & 1 : i * 3;
    values[i] = data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(number) : number;
  }
  const program = b.build({ name: 'exchange', grid: [4, 1, 1], group: [threads, 1, 1] });
  return { name: `exchange of ${dtype}`, program, data: [data, new hostArrays[dtype](4 * threads)], scalars: [] };
}

/**
 * Threads exchange numbers with others of their part alone: after steps by parts of every size, all of them meet. Parts are smaller than a warp, as
 * large and larger, two sizes in turns, and groups are such that some are not full.
 */
function exchangeInParts(threads: number, parts: readonly number[]): ProgramCase {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'int32', 'read', 3 * threads);
  const y = e.param(1, 'int32', 'write', 3 * threads);
  const rows = [0, 1].map((i) => b.shared(`row${i}`, 'int32', threads)) as [KNode, KNode];
  const [group, local] = [e.special('group', 0, 3), e.special('local', 0, threads)];
  const at = e.add(e.mul(group, threads), local);
  b.store(rows[0], local, b.load(x, at));
  b.barrier(parts[0]!);
  b.loop(3, (turn) => {
    for (const [i, part] of parts.entries()) {
      const first = e.mul(e.idiv(local, part), part);
      const other = e.add(first, e.irem(e.add(e.sub(local, first), e.add(turn, i + 1)), part));
      const [from, to] = [rows[i % 2]!, rows[(i + 1) % 2]!];
      b.store(to, local, e.add(e.mul(b.load(from, other), 3), turn));
      // What is read next, and what is overwritten, is of the next part or of this one.
      b.barrier(Math.max(part, parts[(i + 1) % parts.length]!));
    }
  });
  b.barrier();
  b.store(y, at, b.load(rows[0], e.sub(threads - 1, local)));
  const program = b.build({ name: 'parts', grid: [3, 1, 1], group: [threads, 1, 1] });
  const data = [Int32Array.from({ length: 3 * threads }, (_, i) => i * 7), new Int32Array(3 * threads)];
  return { name: `exchange in parts of ${parts.join(' and ')} of ${threads}`, program, data, scalars: [] };
}

/**
 * In rounds that all threads run alike, three of them run an inner loop and the others none: what these read in it would be neither 0 nor out of
 * bounds. Then all add up what they have.
 */
function loopsOfSome(threads: number): ProgramCase {
  const some = 3;
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float64', 'read', 2 * threads);
  const y = e.param(1, 'float64', 'write', 1);
  const row = b.shared('row', 'float64', threads);
  const [size, sum, more] = ['size', 'sum', 'more'].map((name) => b.reg(name, 'float64')) as [KNode, KNode, KNode];
  const zero = e.constant('float64', 0);
  const local = e.special('local', 0, threads);
  const count = e.idiv(e.sub(threads + some - 1, local), threads);
  for (const register of [sum, more]) b.store(register, 0, zero);
  b.loop(2, (i) => {
    b.store(size, 0, zero);
    b.loop(3, (j) => {
      const v = b.load(x, e.add(e.mul(i, 3), j));
      b.store(size, 0, e.add(b.load(size, 0), e.mul(v, v)));
    });
    const square = b.load(size, 0);
    const isZero = e.eq(square, zero);
    const root = e.where(isZero, zero, e.unary('SQRT', e.where(isZero, e.constant('float64', 1), square)));
    b.loop(count, (j) => {
      const v = b.load(x, e.add(e.add(local, e.mul(i, 3)), e.mul(j, threads)));
      b.store(sum, 0, e.add(b.load(sum, 0), e.div(v, root)));
    });
  });
  b.loop(3, (i) =>
    b.loop(count, (j) => {
      const v = b.load(x, e.add(e.add(local, e.mul(i, 3)), e.mul(j, threads)));
      b.store(more, 0, e.add(b.load(more, 0), v));
    }),
  );
  b.store(row, local, e.add(b.load(sum, 0), b.load(more, 0)));
  b.barrier();
  b.loop(Math.log2(threads), (i) => {
    const half = e.shr(e.i32(threads / 2), i);
    b.ifThen(e.lt(local, half), () => b.store(row, local, e.add(b.load(row, local), b.load(row, e.add(local, half)))));
    b.barrier();
  });
  b.ifThen(e.lt(local, 1), () => b.store(y, 0, b.load(row, 0)));
  const program = b.build({ name: 'loops_of_some', group: [threads, 1, 1] });
  const data = [Float64Array.from({ length: 2 * threads }, (_, i) => 1 + (i % 7)), new Float64Array(1)];
  return { name: `inner loops of ${some} of ${threads} threads`, program, data, scalars: [] };
}

/** Groups and their parts. */
const partsOfGroups: readonly (readonly [threads: number, parts: readonly [number, number]])[] = [
  [16, [4, 8]],
  [32, [32, 16]],
  [48, [16, 8]],
  [64, [32, 32]],
  [128, [64, 32]],
  [256, [64, 128]],
  [256, [2, 64]],
];

type AtomicOp = KArgs['ATOMIC']['op'];

/** Threads combine numbers in a few cells: through group memory first, or all at once. */
function atomics(op: AtomicOp, dtype: DType, through: boolean): ProgramCase {
  const [groups, threads, cells] = [5, 16, 7];
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, dtype, 'read', groups * threads);
  const out = e.param(1, dtype, 'readwrite', cells);
  const [group, local] = [e.special('group', 0, groups), e.special('local', 0, threads)];
  const value = b.load(x, e.add(e.mul(group, e.i32(threads)), local));
  const cell = e.irem(e.add(local, group), e.i32(cells));
  // Whatever the cells hold, or-ing 0, the least and the largest number of those given leave it as the others made it.
  const start = e.constant(dtype, op === 'min' ? 100 : op === 'max' ? -100 : 0);
  if (through) {
    const shared = b.shared('cells', dtype, cells);
    b.ifThen(e.lt(local, e.i32(cells)), () => b.store(shared, local, start));
    b.barrier();
    b.atomic(op, shared, cell, value);
    b.barrier();
    b.ifThen(e.lt(local, e.i32(cells)), () => b.atomic(op, out, local, b.load(shared, local)));
  } else b.atomic(op, out, cell, value, e.not(e.eq(local, e.i32(3))));
  const data = new hostArrays[dtype](groups * threads) as Int32Array;
  for (let i = 0; i < data.length; i++) data[i] = op === 'or' ? 1 << ((i * 5) % 11) : ((i * 13) % 41) - 20;
  const result = new hostArrays[dtype](cells) as Int32Array;
  result.fill(op === 'min' ? 90 : op === 'max' ? -90 : 1);
  const program = b.build({ name: `atomic_${op}`, grid: [groups, 1, 1], group: [threads, 1, 1] });
  const name = `atomic ${op} of ${dtype}${through ? ' through group memory' : ''}`;
  return { name, program, data: [data as TypedArray, result as TypedArray], scalars: [] };
}

/**
 * Cases with threads; atomics on those of int32, uint32 and float32 that are asked for.
 *
 * @example
 * [...threadCases(['int32'])].length > 0; // true
 */
export function* threadCases(dtypes: readonly DType[]): Generator<ProgramCase> {
  yield places();
  for (const dtype of dtypes) yield exchange(dtype);
  if (dtypes.includes('float64')) yield loopsOfSome(256);
  if (dtypes.includes('int32')) {
    for (const [threads, parts] of partsOfGroups) yield exchangeInParts(threads, parts);
  }
  for (const through of [false, true]) {
    for (const dtype of ['int32', 'float32'] as const)
      if (dtypes.includes(dtype)) for (const op of ['add', 'max', 'min'] as const) yield atomics(op, dtype, through);
    for (const dtype of ['int32', 'uint32'] as const) if (dtypes.includes(dtype)) yield atomics('or', dtype, through);
  }
}
