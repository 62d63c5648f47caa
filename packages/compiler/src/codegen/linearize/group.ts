/**
 * Combines a reduction across the threads of a group: every thread gets the whole result.
 *
 * Through group memory by halves, with a barrier for each. If the engine has subgroups (`caps.subgroups`) their threads
 * exchange registers instead. A group that is one subgroup then needs no group memory and no barrier; in a larger one, each
 * subgroup leaves its result in group memory and all threads combine those. The code does not assume which threads form a
 * subgroup.
 *
 * Maxima and minima of floats compare bits: unsigned integers in the order of the numbers, with NaN at the winning end. Devices do not
 * specify what their own instructions do with NaN.
 */
import type { CodegenCaps, Parts, State } from '../lowering.ts';
import { type DType, dtypeInfo, isFloat } from '../../shape/dtype.ts';
import type { ProgramBuilder } from '../../ir/builder/builder.ts';
import type { KNode } from '../../ir/ir.ts';

/** Most subgroups whose results every thread combines: beyond, barriers were measured to cost less. */
const mostSubgroups = 16;

/** The number of threads that certainly form one subgroup; undefined if there is none. */
export function oneSubgroup({ subgroups }: CodegenCaps): number | undefined {
  return subgroups?.least === subgroups?.most ? subgroups?.least : undefined;
}

/** Combines the states of a group of `threads` threads, a power of two, at a point that all of them reach. */
export function acrossThreads(b: ProgramBuilder, parts: Parts, threads: number, caps: CodegenCaps): State {
  const { subgroups } = caps;
  if (subgroups === undefined || parts.mine.some((x) => dtypeInfo[x.dtype as DType].bytes !== 4))
    return byHalves(b, parts, threads);
  if (oneSubgroup(caps) === threads) return acrossSubgroup(b, parts);
  const few = threads <= mostSubgroups * subgroups.most;
  return subgroups.numbered && few ? bySubgroups(b, parts, threads) : byHalves(b, parts, threads);
}

/** Through group memory, always in the same order. */
function byHalves(b: ProgramBuilder, { mine, combine }: Parts, threads: number): State {
  const { e } = b;
  const thread = e.special('local', 0, threads);
  const cells = mine.map((x) => b.shared('partial', x.dtype as DType, threads));
  const read = (at: KNode): State => cells.map((c) => b.load(c, at));
  const write = (s: State): void => {
    for (const [i, c] of cells.entries()) b.store(c, thread, s[i]!);
  };
  write(mine);
  b.barrier();
  // A loop instead of unrolled steps: drivers that emulate groups take long to compile every barrier.
  b.loop(Math.log2(threads), (step) => {
    const half = e.shr(threads / 2, step);
    b.ifThen(e.lt(thread, half), () => write(combine(read(thread), read(e.add(thread, half)))));
    b.barrier();
  });
  const whole = read(e.i32(0));
  b.barrier();
  return whole;
}

/** The results of the subgroups, through group memory, in the order of their numbers. */
function bySubgroups(b: ProgramBuilder, parts: Parts, threads: number): State {
  const { e } = b;
  const own = acrossSubgroup(b, parts);
  // Subgroups may be smaller than their maximum.
  const cells = own.map((x) => b.shared('partial', x.dtype as DType, threads));
  const read = (at: KNode): State => cells.map((c) => b.load(c, at));
  b.ifThen(e.eq(e.special('leader', 0, 2), 1), () => {
    for (const [i, c] of cells.entries()) b.store(c, e.special('subgroup', 0, threads), own[i]!);
  });
  b.barrier();
  const whole = own.map((x) => b.reg('whole', x.dtype as DType));
  const keep = (s: State): void => {
    for (const [i, r] of whole.entries()) b.store(r, 0, s[i]!);
  };
  const kept = (): State => whole.map((r) => b.load(r, 0));
  keep(read(e.i32(0)));
  b.loop(e.sub(e.special('subgroups', 0, threads + 1), 1), (i) => {
    keep(parts.combine(kept(), read(e.add(i, 1))));
  });
  b.barrier();
  return kept();
}

/** Combines the states of the thread's subgroup. */
function acrossSubgroup(b: ProgramBuilder, { op, mine }: Parts): State {
  const { e } = b;
  const [x, position] = mine as readonly [KNode, KNode?];
  if (op === 'sum' || op === 'prod') return [b.subgroup(op, x)];
  const best = extremum(b, op === 'max' || op === 'argmax' ? 'max' : 'min', x);
  if (position === undefined) return [best];
  const isNan = (y: KNode): KNode => e.not(e.eq(y, y));
  const same = e.eq(x, best);
  const wins = isFloat(x.dtype as DType) ? e.or(same, e.and(isNan(x), isNan(best))) : same;
  return [best, b.subgroup('min', e.where(wins, position, 2 ** 31 - 1))];
}

/** The greatest or least number of a subgroup; NaN wins. */
function extremum(b: ProgramBuilder, op: 'max' | 'min', x: KNode): KNode {
  if (x.dtype !== 'float32') return b.subgroup(op, x);
  const { e } = b;
  const u = (bits: number): KNode => e.constant('uint32', bits);
  const top = u(0x80000000);
  const bits = e.bitcast(x, 'uint32');
  const number = e.where(e.lt(bits, top), e.or(bits, top), e.not(bits));
  const isNan = e.lt(u(0x7f800000), e.and(bits, u(0x7fffffff)));
  const key = b.subgroup(op, e.where(isNan, u(op === 'max' ? 0xffffffff : 0), number));
  return e.bitcast(e.where(e.lt(key, top), e.not(key), e.xor(key, top)), 'float32');
}
