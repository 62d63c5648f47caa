/**
 * Which nodes of a program are needed as values, and how often.
 *
 * One walk from the end to the start. Index arithmetic counts only for the terms that addresses are made of, so that sums which
 * dissolve into addresses are not computed a second time.
 */
import { type KNode, linearOf } from '@polygrad/core/kernel';
import type { Lowered } from './context.ts';

/** What the emitter knows about one node of the body. */
export class NodeInfo {
  /** Live nodes that use its value. */
  uses = 0;
  /** A LOAD that a VEC splat reads. */
  splat = false;
  value: Lowered | null = null;
}

/** Facts by node. */
export class NodeInfos {
  readonly #infos = new Map<KNode, NodeInfo>();

  of(n: KNode): NodeInfo {
    let info = this.#infos.get(n);
    if (info === undefined) {
      info = new NodeInfo();
      this.#infos.set(n, info);
    }
    return info;
  }
}

/** True for nodes that do something besides giving a value. */
export function isStatement(n: KNode): boolean {
  switch (n.op) {
    case 'STORE':
    case 'ATOMIC':
    case 'LOOP':
    case 'ENDLOOP':
    case 'IF':
    case 'ENDIF':
    case 'BARRIER':
      return true;
    default:
      return false;
  }
}

/** Counts the uses of every live node. */
export function findLive(body: readonly KNode[], infos: NodeInfos): void {
  for (let i = body.length - 1; i >= 0; i--) {
    const n = body[i]!;
    if (!isStatement(n) && infos.of(n).uses === 0) continue;
    const { src } = n;
    switch (n.op) {
      case 'LOAD':
      case 'STORE':
      case 'ATOMIC':
        if (src[0]!.op !== 'REG') for (const term of linearOf(src[1]!).terms) infos.of(term).uses++;
        for (let k = 2; k < src.length; k++) infos.of(src[k]!).uses++;
        break;
      default:
        for (const s of src) infos.of(s).uses++;
        if (n.op === 'VEC' && src.length === 1 && src[0]!.op === 'LOAD') infos.of(src[0]!).splat = true;
    }
  }
}
