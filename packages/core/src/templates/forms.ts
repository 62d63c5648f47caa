/**
 * The linear forms through which an expression depends on its ranges: one for each place where an index is used.
 */
import type { KNode } from '../kernel/ir.ts';
import type { Linear } from '../kernel/node.ts';
import { linearOf } from '../kernel/simplify-linear.ts';

function isIndex(n: KNode): boolean {
  return n.dtype === 'int32' && n.lanes === 1;
}

/** True for a node that is only a part of a larger linear form. */
function isLinearPart(n: KNode): boolean {
  if (!isIndex(n)) return false;
  return n.op === 'ADD' || n.op === 'SUB' || n.op === 'NEG' || n.op === 'MUL' ? !linearOf(n).terms.includes(n) : false;
}

/** All forms with ranges among their terms. */
export function indexForms(roots: readonly KNode[]): readonly Linear[] {
  const forms = new Set<Linear>();
  const seen = new Set<KNode>();
  const stack: KNode[] = [...roots];
  const note = (n: KNode): void => {
    if (!isIndex(n)) return;
    const form = linearOf(n);
    if (form.terms.some((t) => t.op === 'RANGE')) forms.add(form);
  };
  for (const root of roots) note(root);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    const part = isLinearPart(n);
    for (const s of n.src) {
      stack.push(s);
      if (!part) note(s);
    }
  }
  return [...forms];
}
