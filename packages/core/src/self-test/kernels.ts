/**
 * The kernels of the self-test, as programs of the kernel IR: with vectors for engines without groups of threads, and for those with them
 * through group memory, barriers and subgroups. What they compute is in questions.ts.
 *
 * Programs and not loop nests: to find the ways of loops takes 25 ms where nothing is compiled yet, more than all else together, and says nothing of a
 * driver. Engines print them as they print any other.
 */
import { decompose } from '@polygrad/compiler/arithmetic/decompose/decompose';
import { registerFunctions } from '@polygrad/compiler/arithmetic/decompose/functions';
import { log1p } from '@polygrad/compiler/arithmetic/decompose/exponential';
import { ProgramBuilder } from '@polygrad/compiler/ir/builder/builder';
import type { KNode, Program } from '@polygrad/compiler/ir/ir';
import type { UnaryOp } from '@polygrad/compiler/ir/operations';
import type { EngineCaps } from '../engine/engine.ts';

export type Storage = 'float32' | 'float16';

/** float32 numbers in a vector of the engine. */
const lanesOf = ({ vectorBytes }: EngineCaps): number => Math.max(1, vectorBytes / 4);

/** Threads along each side of the blocks of products. */
const sideOf = ({ maxGroup }: EngineCaps): number => (maxGroup < 64 ? 4 : 8);

/** `x * y + z`, in one operation where the engine has one. */
function madd({ nativeOps }: EngineCaps, { e }: ProgramBuilder, x: KNode, y: KNode, z: KNode): KNode {
  return nativeOps.has('MULADD') ? e.ternary('MULADD', x, y, z) : e.add(e.mul(x, y), z);
}

/**
 * A product of matrices, two rows and two vectors of columns at a time. Beyond an odd number of rows only a gate keeps the first from being written
 * again, with the last.
 */
export function vectorProduct(caps: EngineCaps, rows: number, inner: number, columns: number): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const lanes = Math.min(lanesOf(caps), columns / 2);
  const x = e.param(0, 'float32', 'read', rows * inner);
  const y = e.param(1, 'float32', 'read', inner * columns);
  const z = e.param(2, 'float32', 'write', rows * columns);
  const sums = b.reg('sums', 'float32', lanes, 4);
  b.loop(Math.ceil(rows / 2), (pair) => {
    const next = [e.mul(pair, 2), e.add(e.mul(pair, 2), 1)] as const;
    b.loop(columns / (2 * lanes), (block) => {
      const column = e.mul(block, 2 * lanes);
      for (let n = 0; n < 4; n++) b.store(sums, n, e.constant('float32', 0, lanes));
      b.loop(inner, (k) => {
        for (let n = 0; n < 4; n++) {
          const row = e.min(next[n >> 1]!, rows - 1);
          const factor = b.load(x, e.add(e.mul(row, inner), k));
          const at = e.add(e.mul(k, columns), e.add(column, (n & 1) * lanes));
          const sum = madd(caps, b, e.splat(factor, lanes), b.load(y, at, lanes), b.load(sums, n));
          b.store(sums, n, sum);
        }
      });
      for (let n = 0; n < 4; n++) {
        const row = next[n >> 1]!;
        const at = e.add(e.mul(e.irem(row, rows), columns), e.add(column, (n & 1) * lanes));
        b.store(z, at, b.load(sums, n), e.lt(row, rows));
      }
    });
  });
  return b.build({ name: 'product' });
}

/** The sum and the largest element of each row, in vectors and what is left. */
export function vectorReductions(caps: EngineCaps, rows: number, length: number): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const lanes = lanesOf(caps);
  const x = e.param(0, 'float32', 'read', rows * length);
  const y = e.param(1, 'float32', 'write', 2 * rows);
  const ways = [(p: KNode, q: KNode): KNode => e.add(p, q), (p: KNode, q: KNode): KNode => e.max(p, q)] as const;
  const wide = [b.reg('sums', 'float32', lanes), b.reg('largest', 'float32', lanes)] as const;
  const single = [b.reg('sum', 'float32'), b.reg('most', 'float32')] as const;
  const whole = Math.floor(length / lanes);
  b.loop(rows, (row) => {
    const from = e.mul(row, length);
    const start = b.load(x, from, lanes);
    for (const mem of wide) b.store(mem, 0, start);
    b.loop(whole - 1, (n) => {
      const next = b.load(x, e.add(from, e.mul(e.add(n, 1), lanes)), lanes);
      for (const [i, mem] of wide.entries()) b.store(mem, 0, ways[i]!(b.load(mem, 0), next));
    });
    for (const [i, mem] of wide.entries()) {
      const all = b.load(mem, 0);
      let one = e.lane(all, 0);
      for (let n = 1; n < lanes; n++) one = ways[i]!(one, e.lane(all, n));
      b.store(single[i]!, 0, one);
    }
    b.loop(length - whole * lanes, (n) => {
      const next = b.load(x, e.add(from, e.add(n, whole * lanes)));
      for (const [i, mem] of single.entries()) b.store(mem, 0, ways[i]!(b.load(mem, 0), next));
    });
    for (const [i, mem] of single.entries()) b.store(y, e.add(row, i * rows), b.load(mem, 0));
  });
  return b.build({ name: 'reduction' });
}

/**
 * The sum and the largest element of each row, a group of threads for each: every thread has its part, and they are brought together in the
 * engine's way, by subgroups where it has some.
 */
export function groupReductions(caps: EngineCaps, rows: number, length: number): Program {
  const { acrossThreads } = caps.lowering;
  const { subgroups, sharedIsMemory, maxGroup } = caps;
  const b = new ProgramBuilder();
  const { e } = b;
  // Where group memory is plain memory, drivers take long to compile barriers.
  const alone = sharedIsMemory === true && subgroups?.least === subgroups?.most ? subgroups?.least : undefined;
  const threads = acrossThreads === undefined ? 1 : (alone ?? (maxGroup < 64 ? 16 : 64));
  const x = e.param(0, 'float32', 'read', rows * length);
  const y = e.param(1, 'float32', 'write', 2 * rows);
  const row = e.special('group', 0, rows);
  const thread = e.special('local', 0, threads);
  const from = e.mul(row, length);
  const [sum, most] = [b.reg('sum', 'float32'), b.reg('most', 'float32')];
  const start = b.load(x, e.add(from, thread));
  b.store(sum, 0, start);
  b.store(most, 0, start);
  // Some threads have one more than others.
  const count = e.sub(e.idiv(e.sub(length + threads - 1, thread), threads), 1);
  b.loop(count, (n) => {
    const next = b.load(x, e.add(from, e.add(thread, e.mul(e.add(n, 1), threads))));
    b.store(sum, 0, e.add(b.load(sum, 0), next));
    b.store(most, 0, e.max(b.load(most, 0), next));
  });
  const whole = (op: 'sum' | 'max', mine: KNode): KNode => {
    if (acrossThreads === undefined) return mine;
    const combine = ([p]: readonly KNode[], [q]: readonly KNode[]): KNode[] => [
      op === 'sum' ? e.add(p!, q!) : e.max(p!, q!),
    ];
    return acrossThreads(b, { op, mine: [mine], combine }, threads, caps)[0]!;
  };
  const total = whole('sum', b.load(sum, 0));
  const largest = whole('max', b.load(most, 0));
  b.ifThen(e.lt(thread, 1), () => {
    b.store(y, row, total);
    b.store(y, e.add(row, rows), largest);
  });
  return b.build({ name: 'reduction', grid: [rows, 1, 1], group: [threads, 1, 1] });
}

/** exp of the first half of the elements and log1p of the others: one kernel for the driver to compile. */
export function exponentials(caps: EngineCaps, length: number): Program {
  registerFunctions({ LOG1P: log1p });
  const b = new ProgramBuilder();
  const { e } = b;
  const half = length / 2;
  const x = e.param(0, 'float32', 'read', length);
  const y = e.param(1, 'float32', 'write', length);
  const write = (op: UnaryOp, at: KNode, lanes: number): void => {
    const [value] = decompose([e.unary(op, b.load(x, at, lanes))], e, caps);
    b.store(y, at, value!);
  };
  if (caps.simt) {
    const threads = sideOf(caps) ** 2;
    const at = e.add(e.mul(e.special('group', 0, length / threads), threads), e.special('local', 0, threads));
    const first = e.lt(at, half);
    b.ifThen(first, () => write('EXP', at, 1));
    b.ifThen(e.not(first), () => write('LOG1P', at, 1));
    return b.build({ name: 'functions', grid: [length / threads, 1, 1], group: [threads, 1, 1] });
  }
  const lanes = Math.min(lanesOf(caps), half);
  b.loop(half / lanes, (n) => write('EXP', e.mul(n, lanes), lanes));
  b.loop(half / lanes, (n) => write('LOG1P', e.add(e.mul(n, lanes), half), lanes));
  return b.build({ name: 'functions' });
}

/** `x * factor + term` of 16-bit floats: of the threads of a group those that have an element, or in vectors. */
export function addAndMultiply(caps: EngineCaps, length: number, factor: number, term: number): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float16', 'read', length);
  const y = e.param(1, 'float16', 'write', length);
  const write = (at: KNode, lanes: number): void => {
    const of = (v: number): KNode => e.constant('float16', v, lanes);
    b.store(y, at, madd(caps, b, b.load(x, at, lanes), of(factor), of(term)));
  };
  if (!caps.simt) {
    const lanes = Math.min(lanesOf(caps), length);
    b.loop(length / lanes, (n) => write(e.mul(n, lanes), lanes));
    return b.build({ name: 'halves' });
  }
  const threads = sideOf(caps) ** 2;
  const groups = Math.ceil(length / threads);
  const at = e.add(e.mul(e.special('group', 0, groups), threads), e.special('local', 0, threads));
  b.ifThen(e.lt(at, length), () => write(at, 1));
  return b.build({ name: 'halves', grid: [groups, 1, 1], group: [threads, 1, 1] });
}

/**
 * A product of matrices through group memory: a group of threads brings a block of each factor there, of the left one in
 * its dtype, meets, and adds up in float32. No size is a multiple of a block's.
 */
export function groupProduct(
  caps: EngineCaps,
  leftDtype: Storage,
  rows: number,
  inner: number,
  columns: number,
): Program {
  const side = sideOf(caps);
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, leftDtype, 'read', rows * inner);
  const y = e.param(1, 'float32', 'read', inner * columns);
  const z = e.param(2, 'float32', 'write', rows * columns);
  const left = b.shared('left', leftDtype, side * side);
  const right = b.shared('right', 'float32', side * side);
  const sum = b.reg('sum', 'float32');
  const [down, across] = [Math.ceil(rows / side), Math.ceil(columns / side)];
  const thread = e.special('local', 0, side * side);
  const [r, c] = [e.idiv(thread, side), e.irem(thread, side)];
  const row = e.add(e.mul(e.special('group', 1, down), side), r);
  const column = e.add(e.mul(e.special('group', 0, across), side), c);
  /** An element of a matrix, 0 outside. */
  const element = (of: KNode, i: KNode, most: number, j: KNode, width: number): KNode => {
    const inside = e.and(e.lt(i, most), e.lt(j, width));
    const at = e.add(e.mul(e.min(i, most - 1), width), e.min(j, width - 1));
    return e.where(inside, b.load(of, at), e.constant(of.dtype as Storage, 0));
  };
  b.store(sum, 0, e.constant('float32', 0));
  b.loop(Math.ceil(inner / side), (block) => {
    const from = e.mul(block, side);
    b.barrier();
    b.store(left, thread, element(x, row, rows, e.add(from, c), inner));
    b.store(right, thread, element(y, e.add(from, r), inner, column, columns));
    b.barrier();
    b.loop(side, (k) => {
      const factor = e.cast(b.load(left, e.add(e.mul(r, side), k)), 'float32');
      const part = e.mul(factor, b.load(right, e.add(e.mul(k, side), c)));
      b.store(sum, 0, e.add(b.load(sum, 0), part));
    });
  });
  b.ifThen(e.and(e.lt(row, rows), e.lt(column, columns)), () => {
    b.store(z, e.add(e.mul(row, columns), column), b.load(sum, 0));
  });
  return b.build({ name: 'product', grid: [across, down, 1], group: [side * side, 1, 1] });
}
