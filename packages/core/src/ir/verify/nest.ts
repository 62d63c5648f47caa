/**
 * Checks of loop nests (stage A): every range is bound where it is used, once, every node obeys the common rules, and what
 * threads reduce together is the same for all of them.
 */
import { FreeRanges, ownRanges, type Range } from '../free-ranges.ts';
import type { KNode, LoopKernel, LoopStore } from '../ir.ts';
import { printLoopKernel, printNode } from '../print.ts';
import { nodeError } from './node.ts';

/**
 * Throws if a loop nest breaks a rule of stage A.
 *
 * @example
 * const e = new Exprs();
 * const x = e.param(0, 'float32', 'read', 2);
 * const y = e.param(1, 'float32', 'write', 2);
 * const i = e.range(2);
 * const store = e.store(y, i, e.mul(e.load(x, i), 2));
 * const kernel: LoopKernel = { name: 'twice', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
 * verifyLoopKernel(kernel);
 */
export function verifyLoopKernel(k: LoopKernel): void {
  const free = new FreeRanges();
  const seen = new Set<KNode>();
  const slots = new Set(k.params.map((p) => p.arg.slot));
  for (const entry of k.stores) {
    const fail = (n: KNode, what: string): never => {
      throw new Error(`[verify] ${k.name}: ${what}\n${printNode(n)}\nin\n${printLoopKernel(k)}`);
    };
    checkBinding(entry, free, fail);
    const stack: KNode[] = [entry.store];
    for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
      if (seen.has(n)) continue;
      seen.add(n);
      const wrong = nodeError(n) ?? stageError(n, k, slots) ?? togetherError(n, free);
      if (wrong !== null) fail(n, wrong);
      stack.push(...n.src);
    }
  }
}

function stageError(n: KNode, k: LoopKernel, slots: ReadonlySet<number>): string | null {
  switch (n.op) {
    case 'LOOP':
    case 'ENDLOOP':
    case 'IF':
    case 'ENDIF':
    case 'BARRIER':
    case 'SUBGROUP':
    case 'REG':
    case 'SHARED':
      return 'belongs to programs';
    case 'PARAM':
      return slots.has(n.arg.slot) ? null : `slot ${n.arg.slot} is not among the kernel's parameters`;
    case 'SCALAR':
      return k.scalars[n.arg.slot] === n.dtype
        ? null
        : `scalar ${n.arg.slot} is declared as ${k.scalars[n.arg.slot] ?? 'nothing'}`;
    default:
      return n.dtype !== 'void' && n.lanes !== 1 ? 'has several lanes: vectors belong to programs' : null;
  }
}

/** Threads bring together what they have of one result: one for all of them. */
function togetherError(n: KNode, free: FreeRanges): string | null {
  const isLocal = (r: Range): boolean => r.arg.kind === 'local';
  if (n.op !== 'REDUCE' || !ownRanges(n).some(isLocal) || !free.of(n).some(isLocal)) return null;
  return 'is shared by the threads of a group and is of one thread';
}

/** The store's ranges cover everything free in it, and no reduction inside binds one of them again. */
function checkBinding({ store, ranges }: LoopStore, free: FreeRanges, fail: (n: KNode, what: string) => never): void {
  const outer = new Set<Range>(ranges);
  if (outer.size !== ranges.length) fail(store, 'a range appears twice among the loops of a store');
  for (const r of free.of(store))
    if (!outer.has(r)) fail(store, `range of extent ${r.arg.extent} is used but not bound by the store`);
  const seen = new Set<KNode>();
  const stack: KNode[] = [store];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'REDUCE' || n.op === 'STAGE') {
      for (const r of ownRanges(n)) if (outer.has(r)) fail(n, 'binds a range that is a loop of its store');
    }
    stack.push(...n.src);
  }
}
