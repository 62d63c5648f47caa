/**
 * Which values are written where they are used, instead of being given a name.
 *
 * A value is folded into its user if that is its only use, in the same block. A load moves only as far as no store can change what it
 * reads. Registers are told apart one by one, and all other memory is taken to overlap (an input may be an output updated in place).
 */
import type { KNode, Program } from './ir.ts';
import { blocksOf, type Uses } from './uses.ts';

/**
 * The values of a program to fold into their only user, which its text ends up in.
 *
 * @example
 * const p = new ProgramBuilder();
 * const [x, y] = [p.e.param(0, 'float32', 'read', 2), p.e.param(1, 'float32', 'write', 2)];
 * p.store(y, 0, p.e.add(p.load(x, 0), p.load(x, 1)));
 * const program = p.build({ name: 'sum' });
 * const folded = foldedValues(program, usesOf(program.body, (n) => n.src));
 * console.log([...folded].map((n) => n.op)); //=> [ 'ADD', 'LOAD', 'LOAD' ]
 */
export function foldedValues(program: Program, uses: Uses): ReadonlySet<KNode> {
  const { body } = program;
  const around = blocksOf(program);
  const conflictOf = conflictsBackwards();
  const folded = new Set<KNode>();
  /** Where the text of a node ends up. */
  const printed = new Int32Array(body.length);
  for (let at = body.length - 1; at >= 0; at--) {
    const n = body[at]!;
    printed[at] = at;
    const conflict = conflictOf(n, at);
    const use = uses.get(n);
    // What has no sources is short, or has a name already. All threads get to a SUBGROUP, which those of a gate or a select need not.
    if (use?.count !== 1 || n.op === 'LOOP' || n.op === 'SUBGROUP' || n.src.length === 0) continue;
    const end = printed[use.at]!;
    if (around[at] !== around[use.at] || body[use.at]?.op === 'LOOP' || conflict < end) continue;
    folded.add(n);
    printed[at] = end;
  }
  return folded;
}

/** For every node, asked for from the last to the first: the next position that may change what it reads. */
function conflictsBackwards(): (n: KNode, at: number) => number {
  let memory = Number.POSITIVE_INFINITY;
  const registers = new Map<KNode, Map<number, number>>();
  return (n, at) => {
    if (n.op === 'BARRIER') memory = at;
    if (n.op !== 'LOAD' && n.op !== 'STORE' && n.op !== 'ATOMIC') return Number.POSITIVE_INFINITY;
    const [mem, index] = n.src;
    if (mem.op !== 'REG') {
      if (n.op !== 'LOAD') memory = at;
      return memory;
    }
    const cell = index.op === 'CONST' ? Number(index.arg.value) : -1;
    let cells = registers.get(mem);
    if (cells === undefined) registers.set(mem, (cells = new Map()));
    if (n.op !== 'LOAD') cells.set(cell, at);
    return cells.get(cell) ?? Number.POSITIVE_INFINITY;
  };
}
