/**
 * A text that is equal for two programs exactly if the emitter prints the same code for both.
 *
 * Names, costs and tensor lengths are left out; the grid counts, because group indices are derived from it.
 */
import type { KNode, Program } from '@polygrad/core/kernel';

export function programKey(p: Program): string {
  const index = new Map<KNode, number>();
  const parts: string[] = [`${p.grid.join()};${p.group.join()};${p.params.length};${p.scalars.join()}`];
  for (const n of p.body) {
    let text = `${n.op} ${n.dtype} ${n.lanes}`;
    for (const s of n.src) text += ` ${index.get(s) ?? '?'}`;
    switch (n.op) {
      case 'PARAM':
        text += ` #${n.arg.slot}${n.arg.access}`;
        break;
      case 'SCALAR':
        text += ` #${n.arg.slot}`;
        break;
      case 'CONST':
        text += Object.is(n.arg.value, -0) ? ' -0' : ` ${n.arg.value}`;
        break;
      case 'REG':
      case 'SHARED':
        text += ` #${n.arg.length}`;
        break;
      case 'SPECIAL':
        text += ` ${n.arg.kind}${n.arg.axis}`;
        break;
      case 'LANE':
        text += ` #${n.arg.lane}`;
        break;
      case 'ATOMIC':
        text += ` ${n.arg.op}`;
        break;
      case 'LOOP':
        if (n.arg?.unrollHint) text += ' u';
        break;
    }
    index.set(n, index.size);
    parts.push(text);
  }
  return parts.join('\n');
}
