/**
 * Checks of programs: called by tests, by debug builds and by engines that want to be sure.
 *
 * A violation throws with the node's text and what is wrong with it. Loop nests are checked by nest.ts, the rules
 * both stages share (dtypes, lanes, memory) are in node.ts.
 */
import { FreeRanges, ownRanges, type Range } from '../free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, Program } from '../ir.ts';
import { printLoopKernel, printNode, printProgram } from '../print.ts';
import { nodeError } from './node.ts';

interface Open {
  readonly opener: KNode | null;
  readonly defined: Set<KNode>;
}

/**
 * Throws if a program breaks a rule of stage B.
 *
 * @example
 * verifyProgram(randomProgram(1).program);
 */
export function verifyProgram(p: Program): void {
  const open: Open[] = [{ opener: null, defined: new Set() }];
  const params = new Map(p.params.map((x) => [x.arg.slot, x]));
  p.body.forEach((n, at) => {
    const wrong = checkNode(n, p, open, params) ?? nodeError(n);
    if (wrong !== null)
      throw new Error(`[verify] ${p.name}, node ${at}: ${wrong}\n${printNode(n)}\nin\n${printProgram(p)}`);
    if (n.op === 'LOOP' || n.op === 'IF') open.push({ opener: n, defined: new Set([n]) });
    else if (n.op === 'ENDLOOP' || n.op === 'ENDIF') open.pop();
    else open[open.length - 1]?.defined.add(n);
  });
  if (open.length !== 1) throw new Error(`[verify] ${p.name}: ${open.length - 1} blocks are not closed`);
  for (const size of [...p.grid, ...p.group]) {
    if (!Number.isInteger(size) || size < 0)
      throw new Error(`[verify] ${p.name}: grid ${p.grid} and group ${p.group} must be whole numbers`);
  }
}

/** What is wrong with a node's place in the program, or null. */
function checkNode(n: KNode, p: Program, open: readonly Open[], params: ReadonlyMap<number, KNode>): string | null {
  const inside = (s: KNode): boolean => open.some((b) => b.defined.has(s));
  if (inside(n)) return 'appears twice';
  for (const [i, s] of n.src.entries()) {
    if (!inside(s)) return `source ${i} (${s.op}) is not defined before it in an open block`;
  }
  switch (n.op) {
    case 'ENDLOOP':
    case 'ENDIF': {
      const opener = open[open.length - 1]?.opener?.op;
      return opener === (n.op === 'ENDLOOP' ? 'LOOP' : 'IF') ? null : `ends ${opener ?? 'no block'}`;
    }
    case 'RANGE':
    case 'REDUCE':
    case 'STAGE':
      return 'belongs to loop nests';
    case 'PARAM': {
      const declared = params.get(n.arg.slot);
      if (declared === undefined) return `slot ${n.arg.slot} is not among the program's ${p.params.length} parameters`;
      return declared === n ||
        (declared.dtype === n.dtype && declared.op === 'PARAM' && declared.arg.access === n.arg.access)
        ? null
        : `slot ${n.arg.slot} is declared as another parameter`;
    }
    case 'SCALAR':
      return p.scalars[n.arg.slot] === n.dtype
        ? null
        : `scalar ${n.arg.slot} is declared as ${p.scalars[n.arg.slot] ?? 'nothing'}`;
    case 'REG':
    case 'SHARED':
      return open.length === 1 ? null : 'memory must be declared outside all blocks';
    case 'BARRIER':
    case 'SUBGROUP':
      return open.every((b) => b.opener === null || isUniform(b.opener))
        ? null
        : 'is in a block that not all threads may enter';
    default:
      return null;
  }
}

/**
 * True if all threads of a group agree on a block's condition or trip count: it depends on no thread, no subgroup and no memory.
 *
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'float32', 'write', 64);
 * const thread = p.e.special('local', 0, 64);
 * p.ifThen(p.e.lt(thread, 8), () => p.store(y, thread, p.e.f32(1)));
 * const { body } = p.build({ name: 'some', group: [64, 1, 1] });
 * body.filter((n) => n.op === 'IF').map(isUniform); // [false]
 */
export function isUniform(opener: KNode): boolean {
  const seen = new Set<KNode>();
  const stack: KNode[] = [...opener.src];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'LOAD' || n.op === 'SUBGROUP') return false;
    if (n.op === 'SPECIAL' && n.arg.kind !== 'group' && n.arg.kind !== 'subgroups') return false;
    stack.push(...n.src);
  }
  return true;
}

// Checks of loop nests (stage A): every range is bound where it is used, once, every node obeys the common rules, and what
// threads reduce together is the same for all of them.

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
