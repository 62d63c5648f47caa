/**
 * Which values are written where they are used, instead of being given a name.
 *
 * A value is folded into its user if that is its only use, in the same block. A load moves only as far as no store can change what it
 * reads: registers are told apart one by one, all other memory is taken to overlap (an input may be an output updated in place).
 */
import type { KNode, Program } from '@polygrad/core/kernel';

/** The sources a node is printed from, where these are not its own (a comparison printed together with its negation). */
export type Operands = (n: KNode) => readonly KNode[];

export interface Uses {
  /** Values to fold into their only user. */
  readonly folded: ReadonlySet<KNode>;
  /** Values somebody prints. */
  readonly used: ReadonlySet<KNode>;
}

interface User {
  readonly at: number;
  readonly node: KNode;
}

const free: ReadonlySet<string> = new Set(['PARAM', 'SHARED', 'REG', 'CONST', 'SCALAR', 'SPECIAL', 'IOTA']);

/** Decides for a whole program. */
export function analyseUses({ body }: Program, operands: Operands): Uses {
  const block = blocksOf(body);
  const conflict = conflictsOf(body);
  const users = new Map<KNode, User[]>();
  const used = new Set<KNode>();
  const folded = new Set<KNode>();
  /** Where the text of a node ends up. */
  const printed = new Map<KNode, number>();
  for (let at = body.length - 1; at >= 0; at--) {
    const n = body[at] as KNode;
    const uses = users.get(n);
    const statement = n.dtype === 'void' || n.op === 'LOOP';
    if (!statement && uses === undefined) continue;
    used.add(n);
    printed.set(n, at);
    if (!statement && !free.has(n.op) && uses?.length === 1) {
      const [user] = uses as [User];
      const end = printed.get(user.node) as number;
      if (
        block[at] === block[user.at] &&
        user.node.op !== 'LOOP' &&
        // All threads get to it, which those of a gate or a select need not.
        n.op !== 'SUBGROUP' &&
        (n.op !== 'LOAD' || (conflict[at] as number) >= end)
      ) {
        folded.add(n);
        printed.set(n, end);
      }
    }
    for (const s of operands(n)) {
      const list = users.get(s);
      if (list === undefined) users.set(s, [{ at, node: n }]);
      else list.push({ at, node: n });
    }
  }
  return { folded, used };
}

/** The block of every position, as a number. What opens a block belongs to the one around it. */
function blocksOf(body: readonly KNode[]): readonly number[] {
  const open = [0];
  let count = 0;
  return body.map((n) => {
    if (n.op === 'ENDLOOP' || n.op === 'ENDIF') open.pop();
    const block = open[open.length - 1] as number;
    if (n.op === 'LOOP' || n.op === 'IF') open.push(++count);
    return block;
  });
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
    const [mem, index] = n.src as readonly [KNode, KNode];
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
