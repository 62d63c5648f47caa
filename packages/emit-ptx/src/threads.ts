/** Where a thread is, barriers, and what the threads of a warp know of each other. A subgroup is a warp: 32 threads in the order of their numbers. */
import type { KNodeOf, Program, SpecialKind } from '@polygrad/core/kernel';
import { combine } from './arithmetic.ts';
import { bitsType, registerOf } from './dtypes.ts';
import type { DType } from './kernel.ts';
import type { Writer } from './writer.ts';

const warp = 32;
const allLanes = '0xffffffff';

function threadsOf({ group }: Program): number {
  return group[0] * group[1] * group[2];
}

/** The value of a SPECIAL. */
export function special(w: Writer, program: Program, kind: SpecialKind, axis: 0 | 1 | 2): string {
  switch (kind) {
    case 'group':
      return axisRegister(w, 'ctaid', axis);
    case 'local':
      return program.group[axis] === 1 ? '0' : axisRegister(w, 'tid', axis);
    case 'subgroup':
      return warpOf(w, program);
    case 'subgroups':
      return `${Math.ceil(threadsOf(program) / warp)}`;
    case 'leader':
      return w.once('leader', () => {
        const isFirst = w.op('p', 'setp.eq.s32', laneOf(w, program), '0');
        return w.op('r', 'selp.b32', '1', '0', isFirst);
      });
    default:
      return kind satisfies never;
  }
}

function axisRegister(w: Writer, title: 'ctaid' | 'tid', axis: 0 | 1 | 2): string {
  const name = `%${title}.${'xyz'[axis]}`;
  return w.once(name, () => w.op('r', 'mov.u32', name));
}

/** The number of a thread in its group. */
function numberOf(w: Writer, { group }: Program): string {
  return w.once('thread', () => {
    const [x, y, z] = ([0, 1, 2] as const).map((axis) => axisRegister(w, 'tid', axis)) as [string, string, string];
    if (group[1] === 1 && group[2] === 1) return x;
    const row = group[2] === 1 ? y : w.op('r', 'mad.lo.s32', z, `${group[1]}`, y);
    return w.op('r', 'mad.lo.s32', row, `${group[0]}`, x);
  });
}

/** The number of a thread in its warp. */
export function laneOf(w: Writer, program: Program): string {
  return w.once('lane', () => w.op('r', 'and.b32', numberOf(w, program), `${warp - 1}`));
}

function warpOf(w: Writer, program: Program): string {
  return w.once('warp', () => w.op('r', 'shr.u32', numberOf(w, program), '5'));
}

/** Barriers of a group besides the one for all of it, which is number 0. */
const mostNamed = 15;

/** The first barrier of the parts of so many threads, more than a warp has; null where there are not enough. Parts of another size have others. */
function firstNamed({ body, group }: Program, part: number): number | null {
  const threads = group[0] * group[1] * group[2];
  const sizes = new Set(body.map((n) => (n.op === 'BARRIER' && n.arg !== null ? n.arg.part : 0)));
  let first = 1;
  for (const size of [...sizes].sort((a, b) => b - a)) {
    if (size === part) return first + threads / part - 1 <= mostNamed ? first : null;
    if (size > part && size < threads && first + threads / size - 1 <= mostNamed) first += threads / size;
  }
  return null;
}

/**
 * Waits for all threads of the group, or for those of the thread's part. A warp meets for the parts it holds; larger parts have a barrier each, of the
 * sixteen that a group has. Where warps are not full, or barriers too few, all of the group meet.
 */
export function barrier(w: Writer, program: Program, arg: KNodeOf<'BARRIER'>['arg']): void {
  const threads = threadsOf(program);
  const part = arg?.part ?? threads;
  if (part <= warp && part < threads && (threads % warp === 0 || threads < warp)) {
    w.line(`bar.warp.sync ${threads < warp ? `${2 ** threads - 1}` : allLanes};`);
    return;
  }
  const first = part > warp && part < threads ? firstNamed(program, part) : null;
  if (first === null) {
    w.line('bar.sync 0;');
    return;
  }
  const own = w.once(`barrier of ${part}`, () => {
    const number = w.op('r', 'shr.u32', numberOf(w, program), `${Math.log2(part)}`);
    return w.op('r', 'add.s32', number, `${first}`);
  });
  w.line(`bar.sync ${own}, ${part};`);
}

/** The values of all threads of a warp in one, which each of them gets. */
export function reduceWarp(
  w: Writer,
  program: Program,
  op: KNodeOf<'SUBGROUP'>['arg']['op'],
  dtype: DType,
  given: string,
): string {
  const kind = registerOf[dtype];
  const x = given.startsWith('%') ? given : w.op(kind, `mov.${bitsType[kind]}`, given);
  if (threadsOf(program) % warp !== 0) return reduceSome(w, program, op, dtype, x);
  if (kind === 'r' && op !== 'prod' && w.capability >= 80) {
    const type = dtype === 'int32' ? 's32' : 'u32';
    return w.op('r', `redux.sync.${op === 'sum' ? 'add' : op}.${type}`, x, allLanes);
  }
  let sum = x;
  // Both of a pair add the same two numbers, so all threads get the same bits.
  for (let distance = warp / 2; distance >= 1; distance /= 2) {
    const other = w.op(kind, 'shfl.sync.bfly.b32', sum, `${distance}`, '31', allLanes);
    sum = combine(w, op, dtype, sum, other);
  }
  return sum;
}

/** The same where the last warp is not full: threads that are not there give nothing. */
function reduceSome(
  w: Writer,
  program: Program,
  op: KNodeOf<'SUBGROUP'>['arg']['op'],
  dtype: DType,
  x: string,
): string {
  const threads = threadsOf(program);
  const rest = threads % warp;
  const kind = registerOf[dtype];
  const ofLast = (few: string, all: string): string => {
    if (threads < warp) return few;
    const isLast = w.op('p', 'setp.eq.s32', warpOf(w, program), `${Math.floor(threads / warp)}`);
    return w.op('r', 'selp.b32', few, all, isLast);
  };
  const members = w.once('members', () => ofLast(`${2 ** rest - 1}`, allLanes));
  const count = w.once('member count', () => ofLast(`${rest}`, `${warp}`));
  let sum = x;
  for (let distance = warp / 2; distance >= 1; distance /= 2) {
    if (threads < warp && distance >= rest) continue;
    const isThere = w.once(`member ${distance}`, () =>
      w.op('p', 'setp.lt.s32', w.op('r', 'add.s32', laneOf(w, program), `${distance}`), count),
    );
    const other = w.op(kind, 'shfl.sync.down.b32', sum, `${distance}`, '31', members);
    sum = w.op(kind, `selp.${bitsType[kind]}`, combine(w, op, dtype, sum, other), sum, isThere);
  }
  return w.op(kind, 'shfl.sync.idx.b32', sum, '0', '31', members);
}
