/**
 * Which nodes of a program are needed as values, and how often.
 *
 * One walk from the end to the start. Index arithmetic counts only for the terms that addresses are made of, so that sums which
 * dissolve into addresses are not computed a second time.
 */
import type { KNode } from '@polygrad/core/kernel';
import type { Lowered } from './context.ts';

/** An int32 expression as `sum of coefs[i] * terms[i] + offset`, wrapping. */
export interface LinearForm {
  readonly terms: readonly KNode[];
  readonly coefs: readonly number[];
  readonly offset: number;
}

/** What the emitter knows about one node of the body. */
export class NodeInfo {
  /** Live nodes that use its value. */
  uses = 0;
  /** A LOAD that a VEC splat reads. */
  splat = false;
  form: LinearForm | null = null;
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

  /** The linear form of an index expression; made once. */
  form(n: KNode): LinearForm {
    const info = this.of(n);
    return (info.form ??= collect(n));
  }
}

/** Iterative: sums may be long. */
function collect(n: KNode): LinearForm {
  const terms: KNode[] = [];
  const coefs: number[] = [];
  let offset = 0;
  const stack: KNode[] = [n];
  const scales: number[] = [1];
  while (stack.length > 0) {
    const x = stack.pop()!;
    const k = scales.pop()!;
    const a = x.src[0]!;
    const b = x.src[1]!;
    if (x.op === 'CONST') offset = (offset + Math.imul(k, Number(x.arg.value))) | 0;
    else if (x.op === 'ADD' || x.op === 'SUB') {
      stack.push(b, a);
      scales.push(x.op === 'SUB' ? -k | 0 : k, k);
    } else if (x.op === 'NEG') {
      stack.push(a);
      scales.push(-k | 0);
    } else if (x.op === 'MUL' && b.op === 'CONST') {
      stack.push(a);
      scales.push(Math.imul(k, Number(b.arg.value)));
    } else if (x.op === 'MUL' && a.op === 'CONST') {
      stack.push(b);
      scales.push(Math.imul(k, Number(a.arg.value)));
    } else if (x.op === 'SHL' && b.op === 'CONST') {
      stack.push(a);
      scales.push(k << Number(b.arg.value));
    } else {
      const at = terms.indexOf(x);
      if (at < 0) {
        terms.push(x);
        coefs.push(k);
      } else coefs[at] = (coefs[at]! + k) | 0;
    }
  }
  for (let i = terms.length - 1; i >= 0; i--) {
    if (coefs[i] !== 0) continue;
    terms.splice(i, 1);
    coefs.splice(i, 1);
  }
  return { terms, coefs, offset };
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
        if (src[0]!.op !== 'REG') for (const term of infos.form(src[1]!).terms) infos.of(term).uses++;
        for (let k = 2; k < src.length; k++) infos.of(src[k]!).uses++;
        break;
      default:
        for (const s of src) infos.of(s).uses++;
        if (n.op === 'VEC' && src.length === 1 && src[0]!.op === 'LOAD') infos.of(src[0]!).splat = true;
    }
  }
}
