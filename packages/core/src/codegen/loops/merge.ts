/**
 * Fewer, longer loops: ranges of one element vanish, neighbouring ranges that walk memory as one are merged.
 *
 * Ranges a (outer) and b (inner) are one range a * |b| + b if every index in which they occur has them in that proportion
 * and every list that binds one of them binds both, next to each other. Most elementwise kernels become one loop.
 */
import type { Exprs } from '../../ir/expr.ts';
import { type Range, sizeOf } from '../../ir/free-ranges.ts';
import { coefficient, indexForms } from '../../ir/index-forms.ts';
import type { LoopKernel, Transform } from '../../ir/ir.ts';
import type { Linear } from '../../ir/node.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { flattened, step } from '../transforms/step.ts';

interface Uses {
  /** Linear forms with ranges among their terms, one for each place where a range's value is used. */
  readonly forms: readonly Linear[];
  /** Lists of ranges bound together. */
  readonly lists: readonly (readonly Range[])[];
}

function findUses(kernel: LoopKernel): Uses {
  const lists: (readonly Range[])[] = kernel.stores.map((s) => s.ranges);
  const forms = indexForms(
    kernel.stores.map((s) => s.store),
    (ranges) => lists.push(ranges),
  );
  return { forms, lists };
}

function isPlain(r: Range): boolean {
  return r.src.length === 0 && (r.arg.kind === 'loop' || r.arg.kind === 'reduce');
}

/** True if `b` always comes right after `a`, and indices take them as one range. */
function mergeable(a: Range, b: Range, uses: Uses): boolean {
  if (!isPlain(a) || !isPlain(b) || a.arg.kind !== b.arg.kind || a.arg.extent * b.arg.extent > 2 ** 30) return false;
  for (const list of uses.lists) {
    const i = list.indexOf(a);
    const j = list.indexOf(b);
    if (i < 0 ? j >= 0 : j !== i + 1) return false;
  }
  return uses.forms.every((f) => coefficient(f, a) === b.arg.extent * coefficient(f, b));
}

/** The kernel without loops of one element and with mergeable loops merged. */
export function mergeRanges(kernel: LoopKernel, e: Exprs): LoopKernel {
  const dropped = new Map<Range, Replacement>();
  let uses = findUses(kernel);
  for (const list of uses.lists) {
    for (const r of list) if (r.arg.extent === 1 && isPlain(r)) dropped.set(r, { value: e.i32(0), ranges: [] });
  }
  let now = kernel;
  const done: Transform[] = [...(kernel.transforms ?? [])];
  if (dropped.size > 0) {
    now = new Rewriter(e, dropped).kernel(kernel);
    uses = findUses(now);
    done.push(step('drop', dropped.keys()));
  }
  const changes = new Map<Range, Replacement>();
  for (const list of uses.lists) {
    let from = 0;
    for (let i = 1; i <= list.length; i++) {
      if (i < list.length && mergeable(list[i - 1] as Range, list[i] as Range, uses)) continue;
      const chain = list.slice(from, i);
      if (chain.length > 1 && !changes.has(chain[0] as Range)) {
        const one = e.range(sizeOf(chain), chain[0]?.arg.kind);
        flattened(e, chain, { value: one, ranges: [one] }, changes);
        done.push(step('merge', chain, [one]));
      }
      from = i;
    }
  }
  if (changes.size > 0 || now === kernel) now = new Rewriter(e, changes).kernel(now);
  return { ...now, transforms: done };
}
