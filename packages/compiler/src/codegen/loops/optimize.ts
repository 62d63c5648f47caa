/**
 * `optimize`: shapes a loop nest for an engine before it is linearized.
 *
 * Merges loops, then lets the engine's kind (`caps.lowering`) choose vectors, order and groups (cpu.ts, gpu.ts). The meaning of
 * the kernel does not change; the order in which a reduction adds does.
 */
import type { CodegenCaps } from '../lowering.ts';
import { coefficient, endsAlone, indexForms, limitOf, ownRanges, type Range, sizeOf } from '../../ir/free-ranges.ts';
import { flattened, type Replacement, Rewriter, step } from '../../ir/rewrite.ts';
import { Exprs } from '../../ir/expr.ts';
import type { KNode, KNodeOf, LoopKernel, Transform } from '../../ir/ir.ts';
import type { Linear } from '../../ir/node.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';

/**
 * The kernel with the kinds, order and splits of its ranges chosen for the engine. Ranges must all be undecided.
 *
 * @example
 * const e = new Exprs();
 * const x = e.param(0, 'float32', 'read', 2);
 * const y = e.param(1, 'float32', 'write', 2);
 * const i = e.range(2);
 * const store = e.store(y, i, e.mul(e.load(x, i), 2));
 * const kernel: LoopKernel = { name: 'twice', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
 * const { caps } = createReferenceEngine();
 * optimize(kernel, caps).stores.length; // 1
 */
export function optimize(kernel: LoopKernel, caps: CodegenCaps): LoopKernel {
  const e = new Exprs();
  return caps.lowering.shape(mergeRanges(inlineStages(kernel, e, caps), e), e, caps);
}

/**
 * STAGEs that do not fit are recomputed where they are read.
 *
 * Group memory is small, and on SIMT engines a stage would need threads to cooperate; recomputing is always correct, but that
 * sums may be taken in another order.
 */

/** Copies of a stage that vectors of 4-byte elements, unrolled four times, may need. */
function copies(caps: CodegenCaps): number {
  return Math.max(1, caps.vectorBytes / 4) * 4;
}

function fits(stage: KNode, caps: CodegenCaps): boolean {
  const length = sizeOf(ownRanges(stage));
  return !caps.simt && length * dtypeInfo[stage.dtype as DType].bytes * copies(caps) <= caps.sharedBytes;
}

/** The kernel with every STAGE that does not fit replaced by its value at the place of each read. */
function inlineStages(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): LoopKernel {
  for (let now = kernel; ; ) {
    const read = findRead(now, caps);
    if (read === null) return now;
    // Only rare forms make stages.
    now = caps.lowering.rare!()!.inlineStage(now, e, read);
  }
}

/** A read of a stage that does not fit, with no such read inside the stage or the index. */
function findRead(kernel: LoopKernel, caps: CodegenCaps): KNodeOf<'LOAD'> | null {
  const seen = new Set<KNode>();
  const stack: KNode[] = kernel.stores.map((s) => s.store);
  let found: KNodeOf<'LOAD'> | null = null;
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'LOAD' && n.src[0]?.op === 'STAGE' && !fits(n.src[0], caps)) {
      found = n;
      stack.length = 0;
    }
    stack.push(...n.src);
  }
  return found;
}

/**
 * Fewer, longer loops: ranges of one element vanish, neighbouring ranges that are contiguous together are merged.
 *
 * Ranges a (outer) and b (inner) are one range a * |b| + b if every index contains them in that proportion. Every
 * list that binds one of them must bind both, next to each other. Most elementwise kernels become one loop.
 */

interface Uses {
  /** Linear forms with ranges among their terms, one for each use of a range's value. */
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

/** True for a loop without a chosen kind, whose end depends on no other loop. */
function isPlain(r: Range): boolean {
  return endsAlone(r) && (r.arg.kind === 'loop' || r.arg.kind === 'reduce');
}

/** True if `b`, of fixed length, always directly follows `a`, and indices use them as one range. */
function mergeable(a: Range, b: Range, uses: Uses): boolean {
  if (
    b.src.length > 0 ||
    !isPlain(a) ||
    !isPlain(b) ||
    a.arg.kind !== b.arg.kind ||
    a.arg.extent * b.arg.extent > 2 ** 30
  )
    return false;
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
    for (const r of list)
      if (r.arg.extent === 1 && r.src.length === 0 && isPlain(r)) dropped.set(r, { value: e.i32(0), ranges: [] });
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
      if (i < list.length && mergeable(list[i - 1]!, list[i]!, uses)) continue;
      const chain = list.slice(from, i);
      if (chain.length > 1 && !changes.has(chain[0]!)) {
        const one = e.range(sizeOf(chain), chain[0]?.arg.kind, limitOf(e, chain));
        flattened(e, chain, { value: one, ranges: [one] }, changes);
        done.push(step('merge', chain, [one]));
      }
      from = i;
    }
  }
  if (changes.size > 0 || now === kernel) now = new Rewriter(e, changes).kernel(now);
  return { ...now, transforms: done };
}
