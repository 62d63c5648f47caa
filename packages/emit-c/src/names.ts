/** What memories, registers and kernels are called: the same for equal programs, and no word of a language. */
import type { KNode, Program } from '@polygrad/core/kernel';
import { identifier } from '@polygrad/core/kernel/emitters';

/** The variable of one part of one register. */
export function cellName(title: string, cell: number, part: number, parts: number): string {
  return parts === 1 ? `${title}_${cell}` : `${title}_${cell}_${part}`;
}

/** What memories are called: parameters as given by slot, SHARED by their own names and numbers. */
export function memoryNames(program: Program, params: ReadonlyMap<number, string>): (mem: KNode) => string {
  const shared = new Map<KNode, string>();
  for (const n of program.body) if (n.op === 'SHARED') shared.set(n, `shared_${identifier(n.arg.name)}_${shared.size}`);
  return (mem) => (mem.op === 'PARAM' ? params.get(mem.arg.slot) : shared.get(mem)) as string;
}
