/**
 * Which nodes of a program are needed as values, and how often.
 *
 * One walk from the end to the start. Index arithmetic counts only for the terms that addresses are made of, so that sums which
 * dissolve into addresses are not computed a second time.
 */
import type { KNode } from '@polygrad/core/kernel';

/** An int32 expression as `sum of coef * term + offset`, wrapping. */
export interface LinearForm {
  readonly terms: ReadonlyMap<KNode, number>;
  readonly offset: number;
}

/** Linear forms of index expressions, each taken apart once. */
export class LinearForms {
  private readonly forms = new Map<KNode, LinearForm>();

  of(n: KNode): LinearForm {
    let form = this.forms.get(n);
    if (form === undefined) {
      const terms = new Map<KNode, number>();
      const offset = collect(n, 1, terms);
      for (const [term, coef] of terms) if (coef === 0) terms.delete(term);
      form = { terms, offset };
      this.forms.set(n, form);
    }
    return form;
  }
}

/** Adds `scale * n` to the terms and returns its constant part. Iterative: sums may be long. */
function collect(n: KNode, scale: number, terms: Map<KNode, number>): number {
  let offset = 0;
  const stack: KNode[] = [n];
  const scales: number[] = [scale];
  while (stack.length > 0) {
    const x = stack.pop()!;
    const k = scales.pop()!;
    const [a, b] = x.src as readonly [KNode, KNode];
    if (x.op === 'CONST') offset = (offset + Math.imul(k, Number(x.arg.value))) | 0;
    else if (x.op === 'ADD' || x.op === 'SUB') {
      stack.push(b, a);
      scales.push(x.op === 'SUB' ? -k | 0 : k, k);
    } else if (x.op === 'NEG') {
      stack.push(a);
      scales.push(-k | 0);
    } else if (x.op === 'MUL' && (a.op === 'CONST' || b.op === 'CONST')) {
      const [rest, by] = b.op === 'CONST' ? [a, b] : [b, a];
      stack.push(rest);
      scales.push(Math.imul(k, Number((by as typeof by & { op: 'CONST' }).arg.value)));
    } else if (x.op === 'SHL' && b.op === 'CONST') {
      stack.push(a);
      scales.push(k << Number(b.arg.value));
    } else terms.set(x, ((terms.get(x) ?? 0) + k) | 0);
  }
  return offset;
}

export interface Liveness {
  readonly uses: ReadonlyMap<KNode, number>;
  /** Loads that one VEC splat reads. */
  readonly splatLoads: ReadonlySet<KNode>;
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

export function findLive(body: readonly KNode[], forms: LinearForms): Liveness {
  const uses = new Map<KNode, number>();
  const splatLoads = new Set<KNode>();
  const need = (n: KNode): void => {
    uses.set(n, (uses.get(n) ?? 0) + 1);
  };
  for (let i = body.length - 1; i >= 0; i--) {
    const n = body[i]!;
    if (!isStatement(n) && !uses.has(n)) continue;
    switch (n.op) {
      case 'LOAD':
      case 'STORE':
      case 'ATOMIC':
        if (n.src[0]!.op !== 'REG') for (const term of forms.of(n.src[1]!).terms.keys()) need(term);
        for (let k = 2; k < n.src.length; k++) need(n.src[k]!);
        break;
      default:
        if (n.op === 'VEC' && n.src.length === 1 && n.src[0]!.op === 'LOAD') splatLoads.add(n.src[0]!);
        for (const s of n.src) need(s);
    }
  }
  return { uses, splatLoads };
}
