/**
 * Checks of programs and loop nests: called by tests, by debug builds and by engines that want to be sure.
 *
 * A violation throws with the node's text and what is wrong with it.
 */
import type { KNode, Program } from './ir.ts';

/** Throws if a program breaks a rule of stage B. */
export function verifyProgram(p: Program): void {
  const open: { opener: KNode | null; defined: Set<KNode> }[] = [{ opener: null, defined: new Set() }];
  p.body.forEach((n, at) => {
    const bad = (what: string): never => {
      throw new Error(`[verify] ${p.name}, node ${at} ${n.op} ${n.dtype} x ${n.lanes}: ${what}`);
    };
    n.src.forEach((s, i) => {
      if (!open.some((b) => b.defined.has(s))) bad(`source ${i} (${s.op} ${s.dtype}) is not defined before it in an open block`);
    });
    switch (n.op) {
      case 'LOOP':
      case 'IF':
        open.push({ opener: n, defined: new Set([n]) });
        return;
      case 'ENDLOOP':
      case 'ENDIF':
        if (open.length < 2 || open[open.length - 1]?.opener?.op !== (n.op === 'ENDLOOP' ? 'LOOP' : 'IF')) bad('ends no open block of its kind');
        open.pop();
        return;
      case 'RANGE':
      case 'REDUCE':
      case 'STAGE':
        return bad('belongs to loop nests');
    }
    if (open.some((b) => b.defined.has(n))) bad('appears twice');
    open[open.length - 1]?.defined.add(n);
  });
  if (open.length !== 1) throw new Error(`[verify] ${p.name}: ${open.length - 1} blocks are not closed`);
}
