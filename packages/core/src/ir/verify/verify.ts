/**
 * Checks of programs: called by tests, by debug builds and by engines that want to be sure.
 *
 * A violation throws with the node's text and what is wrong with it. Loop nests are checked by nest.ts, the rules
 * both stages share (dtypes, lanes, memory) are in node.ts.
 */
import type { KNode, Program } from '../ir.ts';
import { printNode, printProgram } from '../print.ts';
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
