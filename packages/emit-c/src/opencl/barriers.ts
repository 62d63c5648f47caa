/** Barriers that PoCL needs besides those of the program. */
import { blocksOf, isUniform, type KNode, type Program, type ProgramNode, uniqueNode } from '@polygrad/core/kernel';

/** What is more than a value. */
const events: ReadonlySet<KNode['op']> = new Set(['LOAD', 'STORE', 'ATOMIC', 'LOOP', 'ENDLOOP', 'IF', 'ENDIF']);

/**
 * The program with more barriers, if it has some at all. They stand before and after every IF that all threads of a group enter or none. They also
 * stand after every loop that some threads run longer than others, inside of one that all run alike.
 *
 * PoCL (3.1 at least) makes loops over the threads of a group, cut at barriers. It adds barriers of its own: in loops that all threads run
 * alike, and at what it takes for the beginning of a branch with one. Where such a branch is not set apart, all threads may carry
 * out what stands in it for some of them. LLVM may make two loops of one: of the rounds with such an inner loop, and of those without. Then the
 * barriers that PoCL adds stand in a branch as well, and all threads take the way of the first.
 */
export function fencedBranches(program: Program): Program {
  if (!program.body.some((n) => n.op === 'BARRIER')) return program;
  const body: ProgramNode[] = [];
  /** True after a barrier, until something happens. */
  let fenced = false;
  const write = (n: ProgramNode): void => {
    body.push(n);
    if (n.op === 'BARRIER') fenced = true;
    else if (events.has(n.op)) fenced = false;
  };
  const fence = (): void => {
    if (!fenced) write(uniqueNode('BARRIER', 'void', 1, [], null));
  };
  const around = blocksOf(program);
  /** Positions of the blocks that all threads of a group enter or none; -1 stands for the body. */
  const together = new Set([-1]);
  for (const [at, n] of program.body.entries()) {
    if ((n.op === 'IF' || n.op === 'LOOP') && together.has(around[at]!) && isUniform(n)) together.add(at);
    if (n.op === 'IF' && together.has(at)) fence();
    write(n);
    const begin = around[at]!;
    if (n.op === 'ENDIF' && together.has(begin)) fence();
    if (n.op !== 'ENDLOOP' || together.has(begin)) continue;
    const outside = around[begin]!;
    if (outside >= 0 && together.has(outside)) fence();
  }
  return { ...program, body };
}
