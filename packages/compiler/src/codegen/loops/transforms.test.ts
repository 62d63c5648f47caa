/** Every transform keeps what a nest means: interpreted before and after, for random nests, with random transforms one after another. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { draws } from '../../fixtures/draws.ts';
import { evaluateNest } from '../../interpreter/evaluate-nest.ts';
import { Exprs } from '../../ir/expr.ts';
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel, LoopStore, RangeKind } from '../../ir/ir.ts';
import { printLoopKernel, printTransforms } from '../../ir/print.ts';
import { verifyLoopKernel } from '../../ir/verify/verify.ts';
import { flat } from '../fixtures/nests.ts';
import { as, cut, flatten, inChunks, innermost, LoopNest, merge, reorder, split } from './transforms.ts';
import { workOf } from './work.ts';

interface Drawn {
  readonly nest: LoopNest;
  readonly kernel: LoopKernel;
}

/** Two stores over the same loops: elements of slot 2 shifted and turned around, and a sum over loops of its own. */
function drawn(shape: readonly number[], depth: number, order: number, twice: boolean): Drawn {
  const e = new Exprs();
  const at = shape.map((n) => e.range(n));
  const k = e.range(depth, 'reduce');
  const turned = order === 0 ? at : [...at.slice(order % at.length), ...at.slice(0, order % at.length)];
  const size = shape.reduce((x, y) => x * y, 1);
  const params = [
    e.param(0, 'int32', 'write', size),
    e.param(1, 'int32', 'write', size),
    e.param(2, 'int32', 'read', size + depth),
  ] as LoopKernel['params'][number][];
  const [a, b, x] = params as [KNode, KNode, KNode];
  const read = flat(
    e,
    turned,
    turned.map((r) => r.arg.extent),
  );
  const here = flat(e, at, shape);
  const gate = e.lt(at[0] as KNode, Math.ceil((shape[0] as number) / 2));
  const sum = e.reduce('sum', e.mul(e.load(x, e.add(read, k)), e.add(k, 1)), [k]);
  const stores: LoopStore[] = [{ store: e.store(a, here, e.where(gate, sum, e.load(x, read))), ranges: at }];
  if (twice) stores.push({ store: e.store(b, here, e.add(e.load(x, here), at[0] as KNode)), ranges: at });
  const kernel: LoopKernel = { name: 'drawn', params, scalars: [], stores };
  return { nest: new LoopNest(e, stores), kernel };
}

function values(kernel: LoopKernel): Int32Array[] {
  const data = kernel.params.map((p) =>
    Int32Array.from({ length: p.arg.length }, (_, i) => (p.arg.slot === 2 ? (i * 37) % 101 : -1)),
  );
  evaluateNest(kernel, data);
  return data;
}

const kinds: readonly RangeKind[] = ['serial', 'vector', 'unroll', 'grid', 'loop'];

/** The names of the steps, and the nest after each. `pick` chooses among what there is. */
const steps: Record<string, (nest: LoopNest, pick: (n: number) => number) => LoopNest> = {
  split(nest, pick) {
    const r = storeLoop(nest, pick);
    return split(nest, r, 1 + pick(r.arg.extent + 2), 'loop', kinds[pick(kinds.length)] as RangeKind);
  },
  'split of a sum'(nest, pick) {
    const own = workOf(nest).binders.flatMap((b) => b.own);
    const r = own[pick(own.length)];
    return r === undefined || r.src.length > 0 ? nest : split(nest, r, 1 + pick(r.arg.extent), 'reduce', 'unroll');
  },
  'split of what a split made'(nest, pick) {
    const r = storeLoop(nest, pick);
    const once = split(nest, r, 1 + pick(r.arg.extent), 'loop', 'loop');
    const made = once.loopsOf(r)[0] as Range;
    return split(once, made, 1 + pick(made.arg.extent), 'grid', 'serial');
  },
  merge(nest, pick) {
    const list = (nest.stores[0] as LoopStore).ranges;
    const same = nest.stores.every((s) => list.every((r) => r.src.length === 0 && s.ranges.includes(r)));
    const from = pick(list.length);
    return same && list.length > from + 1 ? merge(nest, list.slice(from)) : nest;
  },
  'merge of what a split made'(nest, pick) {
    const list = (nest.stores[0] as LoopStore).ranges;
    const [r, other] = [list[0], list[1]];
    if (r === undefined || other === undefined || r.src.length + other.src.length > 0) return nest;
    if (nest.stores.some((s) => !s.ranges.includes(r) || !s.ranges.includes(other))) return nest;
    const divisors = [1, 2, 3, 4, 5].filter((n) => r.arg.extent % n === 0);
    const blocks = split(nest, r, divisors[pick(divisors.length)] as number);
    const inside = blocks.loopsOf(r)[1];
    return inside === undefined ? blocks : merge(blocks, [inside, other]);
  },
  bind(nest, pick) {
    const list = (nest.stores[0] as LoopStore).ranges;
    if (nest.stores.some((s) => s.ranges.some((r) => !list.includes(r) || r.src.length > 0))) return nest;
    const total = list.reduce((n, r) => n * r.arg.extent, 1);
    const threads = 1 + pick(7);
    return flatten(nest, list, inChunks(nest.e, total, threads, ['grid', 'local']), 'bind', threads);
  },
  as(nest, pick) {
    return as(nest, storeLoop(nest, pick), kinds[pick(kinds.length)] as RangeKind);
  },
  cut(nest, pick) {
    const r = storeLoop(nest, pick);
    return r.arg.extent < 2 ? nest : cut(nest, r, [1 + pick(r.arg.extent - 1)]);
  },
  peel(nest, pick) {
    const r = storeLoop(nest, pick);
    return r.arg.extent < 2 ? nest : cut(nest, r, [1 + pick(r.arg.extent - 1)], true);
  },
  innermost(nest, pick) {
    const r = storeLoop(nest, pick);
    return isOuter(nest, r) ? nest : innermost(nest, r);
  },
  reorder(nest) {
    const list = (nest.stores[0] as LoopStore).ranges;
    if (list.some((r) => r.src.length > 0)) return nest;
    return reorder(nest, (a, b) => list.indexOf(b) - list.indexOf(a));
  },
};

/** A loop of the stores that all of them have and that does not end early. */
function storeLoop(nest: LoopNest, pick: (n: number) => number): Range {
  const list = (nest.stores[0] as LoopStore).ranges.filter(
    (r) => r.src.length === 0 && nest.stores.every((s) => s.ranges.includes(r)),
  );
  return list[pick(list.length)] ?? nest.e.range(1);
}

/** True if another loop's end depends on it: then it must stay outside. */
function isOuter(nest: LoopNest, r: Range): boolean {
  return nest.stores.some((s) => s.ranges.some((x) => x.src[0] !== undefined && workOf(nest).free.has(x.src[0], r)));
}

describe('transforms keep what a nest means', () => {
  for (const [name, step] of Object.entries(steps)) {
    test(name, () => check([step]));
  }
  test('one after another', () => check(Object.values(steps)));
});

function check(choice: readonly (typeof steps)[string][]): void {
  const shape = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(
      shape,
      fc.integer({ min: 1, max: 7 }),
      fc.nat(2),
      fc.boolean(),
      fc.array(fc.nat(1000), { minLength: 30, maxLength: 30 }),
      (sizes, depth, order, twice, numbers) => {
        const { nest, kernel } = drawn(sizes, depth, order, twice);
        let drawnAt = 0;
        const pick = (n: number): number => (n === 0 ? 0 : (numbers[drawnAt++ % numbers.length] as number) % n);
        let now: readonly LoopNest[] = [nest];
        for (let i = 0; i < (choice.length > 1 ? 4 : 1); i++)
          now = now.flatMap((part) => (choice[pick(choice.length)] as (typeof steps)[string])(part, pick).parts());
        const after = { ...kernel, stores: now.flatMap((part) => part.stores) };
        verifyLoopKernel(after);
        try {
          expect(values(after)).toEqual(values(kernel));
        } catch (error) {
          throw new Error(`${printLoopKernel(kernel)}\n${printLoopKernel(after)}`, { cause: error });
        }
      },
    ),
    { numRuns: 150, ...draws },
  );
}

test('a nest lists what was done to it', () => {
  const { nest } = drawn([8, 6], 4, 1, false);
  const [i, j] = (nest.stores[0] as LoopStore).ranges as [Range, Range];
  const chunks = split(nest, i, 4, 'grid', 'serial');
  const done = as(
    reorder(chunks, (a, b) => Number(a === i) - Number(b === i)),
    j,
    'vector',
  );
  expect(printTransforms(done.done)).toEqual(['split i0 4 grid serial', 'reorder i1 i0', 'vector i1']);
});
