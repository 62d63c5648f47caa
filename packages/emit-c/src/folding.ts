/**
 * Which values are written where they are used, instead of being given a name.
 *
 * A value is folded into its user if that is its only use, in the same block. A load moves only as far as no store can change what it
 * reads: registers are told apart one by one, all other memory is taken to overlap (an input may be an output updated in place).
 */
import { blocksOf, isStatement, type KNode, type Program, type Uses } from '@polygrad/core/kernel';

const free: ReadonlySet<string> = new Set(['PARAM', 'SHARED', 'REG', 'CONST', 'SCALAR', 'SPECIAL', 'IOTA']);

/** The values of a program to fold into their only user, which its text ends up in. */
export function foldedValues(program: Program, uses: Uses): ReadonlySet<KNode> {
  const { body } = program;
  const { around } = blocksOf(program);
  const conflict = conflictsOf(body);
  const folded = new Set<KNode>();
  /** Where the text of a node ends up. */
  const printed = new Int32Array(body.length);
  for (let at = body.length - 1; at >= 0; at--) {
    const n = body[at] as KNode;
    printed[at] = at;
    const user = isStatement(n) || free.has(n.op) ? -1 : uses.onlyUserOf(n);
    if (user < 0 || around[at] !== around[user] || body[user]?.op === 'LOOP') continue;
    const end = printed[user] as number;
    // All threads get to a SUBGROUP, which those of a gate or a select need not.
    if (n.op === 'SUBGROUP' || (n.op === 'LOAD' && (conflict[at] as number) < end)) continue;
    folded.add(n);
    printed[at] = end;
  }
  return folded;
}

/** For every load: the next position that may change what it reads. */
function conflictsOf(body: readonly KNode[]): readonly number[] {
  const found = new Array<number>(body.length).fill(Number.POSITIVE_INFINITY);
  let memory = Number.POSITIVE_INFINITY;
  const registers = new Map<KNode, Map<number, number>>();
  for (let at = body.length - 1; at >= 0; at--) {
    const n = body[at] as KNode;
    if (n.op === 'BARRIER') memory = at;
    if (n.op !== 'LOAD' && n.op !== 'STORE' && n.op !== 'ATOMIC') continue;
    const [mem, index] = n.src;
    if (mem.op !== 'REG') {
      if (n.op === 'LOAD') found[at] = memory;
      else memory = at;
      continue;
    }
    const cell = index.op === 'CONST' ? Number(index.arg.value) : -1;
    let cells = registers.get(mem);
    if (cells === undefined) registers.set(mem, (cells = new Map()));
    if (n.op === 'LOAD') found[at] = cells.get(cell) ?? Number.POSITIVE_INFINITY;
    else cells.set(cell, at);
  }
  return found;
}
