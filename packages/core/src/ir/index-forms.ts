/**
 * The linear forms through which expressions depend on ranges: one for each place where an index is used.
 *
 * Two ranges that stand in one proportion in all of them can be treated as one: merged where they walk memory without gaps,
 * or seen as a window that slides.
 */
import { ownRanges, type RangeList } from './free-ranges.ts';
import type { KNode } from './ir.ts';
import type { Linear } from './node.ts';
import { linearOf } from './simplify/linear.ts';

function isIndex(n: KNode): boolean {
  return n.dtype === 'int32' && n.lanes === 1;
}

/** True for a node that is only a part of a larger linear form. */
function isLinearPart(n: KNode): boolean {
  if (!isIndex(n)) return false;
  return n.op === 'ADD' || n.op === 'SUB' || n.op === 'NEG' || n.op === 'MUL' ? !linearOf(n).terms.includes(n) : false;
}

/** All forms with ranges among their terms; `onBound` gets the ranges of every REDUCE and STAGE on the way. */
export function indexForms(roots: readonly KNode[], onBound?: (ranges: RangeList) => void): readonly Linear[] {
  const forms = new Set<Linear>();
  const seen = new Set<KNode>();
  const stack: KNode[] = [];
  const visit = (n: KNode, part: boolean): void => {
    stack.push(n);
    if (part || !isIndex(n)) return;
    const form = linearOf(n);
    if (form.terms.some((t) => t.op === 'RANGE')) forms.add(form);
  };
  for (const root of roots) visit(root, false);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    const binds = n.op === 'REDUCE' || n.op === 'STAGE';
    if (binds) onBound?.(ownRanges(n));
    const part = isLinearPart(n);
    for (let i = 0; i < (binds ? 1 : n.src.length); i++) visit(n.src[i]!, part);
  }
  return [...forms];
}

/** Coefficient of a node in a form. */
export function coefficient(f: Linear, n: KNode): number {
  const i = f.terms.indexOf(n);
  return i < 0 ? 0 : f.coefs[i]!;
}
