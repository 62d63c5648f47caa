/**
 * Scatters of many updates on engines with groups of threads: updates are sorted by where they go, in order among equals, and the
 * first of each kind combines all of its kind.
 *
 * Every element is combined in the order of its updates, without atomics: the same bits as one update after another.
 */
import type { KNode } from '../kernel/ir.ts';
import { sizeOf } from '../shape/view.ts';
import { positionOf } from './lines.ts';
import type { ProgramSet } from './program-set.ts';
import { axesOf, combineUpdate, type ScatterSpec } from './scatter-parts.ts';
import { mergeSort } from './sort-merge.ts';

export function updateSorted(set: ProgramSet, spec: ScatterSpec, sharedBytes: number, maxGroup: number): void {
  const { op, axis, out, index, updates } = spec;
  const many = sizeOf(index.view.shape);
  const rank = index.view.shape.length;
  const keys = set.temp('uint32', many);
  const order = set.temp('int32', many);
  mergeSort(
    set,
    {
      lines: 1,
      n: many,
      count: many,
      words: 1,
      open: (w) => {
        const { b, e } = w;
        const memory = w.param(index.slot, 'int32', 'read', index.view.span);
        return (_line, i, _word, inside) => {
          const at = positionOf(e, index.view, e.where(inside, i, e.i32(0)));
          return e.where(inside, e.bitcast(b.load(memory, at), 'uint32'), e.constant('uint32', 0xffff_ffff));
        };
      },
      result: (w) => {
        const { b } = w;
        const [toKeys, toOrder] = [w.temp(keys, 'write'), w.temp(order, 'write')];
        return (_line, at, key, position, gate) => {
          b.store(toKeys, at, key[0] as KNode, gate);
          b.store(toOrder, at, position, gate);
        };
      },
    },
    sharedBytes,
    maxGroup,
  );
  const inner = sizeOf(out.shape.slice(axis + 1));
  const before = sizeOf(out.shape.slice(0, axis));
  const size = out.shape[axis] as number;
  set.add('_sorted', before * many * inner, (w) => {
    const { b, e, group } = w;
    const target = w.param(0, out.dtype, op === 'set' ? 'write' : 'readwrite', out.span);
    const from = 'constant' in updates ? null : w.param(updates.slot, out.dtype, 'read', updates.view.span);
    const [sorted, positions] = [w.temp(keys, 'read'), w.temp(order, 'read')];
    const column = e.irem(group, e.i32(inner));
    const row = e.idiv(group, e.i32(inner));
    const [lead, at] = [e.idiv(row, e.i32(many)), e.irem(row, e.i32(many))];
    const key = b.load(sorted, at);
    const updateAt = (sortedAt: KNode): KNode => {
      if ('constant' in updates) return e.constant(out.dtype, updates.constant);
      const { view } = updates;
      const which = b.load(positions, sortedAt);
      const place = [
        e.i32(view.shift),
        positionOf(e, axesOf(view, 0, axis), lead),
        positionOf(e, axesOf(view, axis, axis + rank), which),
        positionOf(e, axesOf(view, axis + rank, view.shape.length), column),
      ].reduce((x, y) => e.add(x, y));
      return b.load(from as KNode, place);
    };
    const slice = e.add(
      e.i32(out.shift),
      e.mul(e.add(e.mul(lead, e.i32(size)), e.bitcast(key, 'int32')), e.i32(inner)),
    );
    const to = e.add(slice, column);
    const differs = (neighbour: KNode, exists: KNode): KNode =>
      e.or(e.not(exists), e.ne(b.load(sorted, neighbour, 1, exists), key));
    if (op === 'set') {
      const last = differs(e.add(at, e.i32(1)), e.lt(at, e.i32(many - 1)));
      b.ifThen(last, () => b.store(target, to, updateAt(at)));
      return;
    }
    b.ifThen(differs(e.sub(at, e.i32(1)), e.lt(e.i32(0), at)), () => {
      const [low, high] = [b.reg('low', 'int32'), b.reg('high', 'int32')];
      b.store(low, 0, at);
      b.store(high, 0, e.i32(many));
      // The first element behind this one with another key.
      b.loop(Math.ceil(Math.log2(many + 1)) + 1, () => {
        const [l, h] = [b.load(low, 0), b.load(high, 0)];
        b.ifThen(e.lt(l, h), () => {
          const middle = b.place(e.add(l, e.shr(e.sub(h, l), e.i32(1))));
          const same = b.place(e.eq(b.load(sorted, middle), key));
          b.store(low, 0, e.where(same, e.add(middle, e.i32(1)), l));
          b.store(high, 0, e.where(same, h, middle));
        });
      });
      const sum = b.reg('sum', out.dtype);
      b.store(sum, 0, b.load(target, to));
      const count = b.place(e.sub(b.load(low, 0), at));
      b.loop(count, (i) => b.store(sum, 0, combineUpdate(w, op, b.load(sum, 0), updateAt(e.add(at, i)))));
      b.store(target, to, b.load(sum, 0));
    });
  });
}
