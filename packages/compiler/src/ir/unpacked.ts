/** Packed programs (packed.ts) as nodes again: for people, and for whoever writes them. */
import type { DType } from '../shape/dtype.ts';
import { uniqueNode } from './expr.ts';
import type { KArg, KNode, KNodeOf, KOp, Program, ProgramNode } from './ir.ts';
import { assumeBounds } from './node.ts';
import { hasArg, inInt32, isInBody, names, notNegative, type PackedProgram, positive } from './packed.ts';
import { programOf } from './program.ts';

/**
 * The program again, of new nodes.
 *
 * @example
 * const { program } = randomProgram(1);
 * printProgram(unpackProgram(packProgram(program))) === printProgram(program); // true
 */
export function unpackProgram({ head, paramCount, words, args }: PackedProgram): Program {
  const nodes: KNode[] = [];
  const body: ProgramNode[] = [];
  let next = 0;
  for (let at = 0; at < words.length; ) {
    const what = words[at++]!;
    const size = words[at++]!;
    const src = Array.from(words.subarray(at, (at += size >> 16)), (i) => nodes[i]!);
    const dtype = names[(what >> 8) & 255] as DType;
    const arg = (what & hasArg) === 0 ? null : (args[next++] as KArg<KOp>);
    const node = uniqueNode(names[what & 255] as ProgramNode['op'], dtype, size & 0xffff, src, arg) as ProgramNode;
    if (dtype === 'int32' || dtype === 'uint32') {
      const low = (what & positive) !== 0 ? 1 : (what & notNegative) !== 0 ? 0 : Number.NEGATIVE_INFINITY;
      assumeBounds(node, low, (what & inInt32) !== 0 ? 0x7fffffff : Number.POSITIVE_INFINITY);
    }
    nodes.push(node);
    if ((what & isInBody) !== 0) body.push(node);
  }
  return programOf({ ...head, params: nodes.slice(0, paramCount) as KNodeOf<'PARAM'>[], body });
}
