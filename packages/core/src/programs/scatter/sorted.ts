/**
 * Scatters of many updates on engines with groups of threads: updates are sorted by where they go, in order among equals, and the
 * first of each kind combines all of its kind.
 *
 * Elements are combined in the order of their updates, without atomics: the same bits as one update after another. Where many updates
 * go to one place, blocks of them are combined first, side by side: one thread would be busy with millions.
 */
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import { sizeOf } from '../../shape/view.ts';
import { positionOf } from '../lines.ts';
import type { ProgramSet, ProgramWriter, Temp } from '../program-set.ts';
import { axesOf, combineUpdate, type ScatterSpec } from './parts.ts';
import { canSortDigits, digitSort } from '../sort/digits.ts';
import { mergeSort } from '../sort/merge.ts';

/** Updates that are combined first where all of them go to one place. */
export const blockLength = 512;

/** Updates from which on they are sorted by digits: fewer are sorted in fewer steps by comparison. */
export const manyByDigits: number = 2 ** 15;

/** Places that updates go to, in order, and which update it is. */
function sortUpdates(
  set: ProgramSet,
  { axis, index, out }: ScatterSpec,
  keys: Temp,
  order: Temp,
  caps: CodegenCaps,
): void {
  const many = sizeOf(index.view.shape);
  const open = (w: ProgramWriter) => {
    const memory = w.param(index.slot, 'int32', 'read', index.view.span);
    return (i: KNode) => w.e.bitcast(w.b.load(memory, positionOf(w.e, index.view, i)), 'uint32');
  };
  if (many >= manyByDigits && caps.sharedIsMemory !== true && canSortDigits(caps.maxGroup)) {
    const bits = Math.ceil(Math.log2(out.shape[axis]!));
    digitSort(set, { n: many, bits, open, to: { keys, order } }, caps.maxGroup);
    return;
  }
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
          const at = positionOf(e, index.view, e.where(inside, i, 0));
          return e.where(inside, e.bitcast(b.load(memory, at), 'uint32'), e.constant('uint32', 0xffff_ffff));
        };
      },
      result: (w) => {
        const { b } = w;
        const [toKeys, toOrder] = [w.temp(keys, 'write'), w.temp(order, 'write')];
        return (_line, at, key, position, gate) => {
          b.store(toKeys, at, key[0]!, gate);
          b.store(toOrder, at, position, gate);
        };
      },
    },
    caps.sharedBytes,
    caps.maxGroup,
  );
}

export function updateSorted(set: ProgramSet, spec: ScatterSpec, caps: CodegenCaps): void {
  const { op, axis, out, index, updates } = spec;
  const many = sizeOf(index.view.shape);
  const rank = index.view.shape.length;
  const keys = set.temp('uint32', many);
  const order = set.temp('int32', many);
  sortUpdates(set, spec, keys, order, caps);
  const inner = sizeOf(out.shape.slice(axis + 1));
  const before = sizeOf(out.shape.slice(0, axis));
  const size = out.shape[axis]!;
  /** Reads an update by its place among the sorted ones, for the rows of `lead` and a column of them. */
  const readerOf = ({ b, e, ...w }: ProgramWriter, lead: KNode, column: KNode): ((sortedAt: KNode) => KNode) => {
    if ('constant' in updates) return () => e.constant(out.dtype, updates.constant);
    const { slot, view } = updates;
    const from = w.param(slot, out.dtype, 'read', view.span);
    const positions = w.temp(order, 'read');
    return (sortedAt) => {
      const which = b.load(positions, sortedAt);
      const place = [
        e.i32(view.shift),
        positionOf(e, axesOf(view, 0, axis), lead),
        positionOf(e, axesOf(view, axis, axis + rank), which),
        positionOf(e, axesOf(view, axis + rank, view.shape.length), column),
      ].reduce((x, y) => e.add(x, y));
      return b.load(from, place);
    };
  };
  const kinds = Math.min(many, size);
  const blocks = op === 'set' || caps.maxBindings < 5 || many < 4 * blockLength ? 0 : Math.floor(many / blockLength);
  const parts = blocks === 0 ? null : set.temp(out.dtype, before * blocks * inner);
  if (op !== 'set' && parts !== null) {
    set.add('_blocks', before * blocks * inner, (w) => {
      const { b, e, group } = w;
      const sorted = w.temp(keys, 'read');
      const row = e.idiv(group, inner);
      const first = b.place(e.mul(e.irem(row, blocks), blockLength));
      const last = e.add(first, blockLength - 1);
      const updateAt = readerOf(w, e.idiv(row, blocks), e.irem(group, inner));
      const target = w.temp(parts, 'write');
      b.ifThen(w.typical(e.eq(b.load(sorted, first), b.load(sorted, last)), Math.max(0, 1 - kinds / blocks)), () => {
        const sum = b.reg('sum', out.dtype);
        b.store(sum, 0, updateAt(first));
        b.loop(blockLength - 1, (i) =>
          b.store(sum, 0, combineUpdate(w, op, b.load(sum, 0), updateAt(e.add(e.add(first, 1), i)))),
        );
        b.store(target, group, b.load(sum, 0));
      });
    });
  }
  set.add('_sorted', before * many * inner, (w) => {
    const { b, e, group } = w;
    const target = w.param(0, out.dtype, op === 'set' ? 'write' : 'readwrite', out.span);
    const sorted = w.temp(keys, 'read');
    const column = e.irem(group, inner);
    const row = e.idiv(group, inner);
    const [lead, at] = [e.idiv(row, many), e.irem(row, many)];
    const updateAt = readerOf(w, lead, column);
    const key = b.load(sorted, at);
    const slice = e.add(out.shift, e.mul(e.add(e.mul(lead, size), e.bitcast(key, 'int32')), inner));
    const to = e.add(slice, column);
    const differs = (neighbour: KNode, exists: KNode): KNode =>
      w.typical(e.or(e.not(exists), e.ne(b.load(sorted, neighbour, 1, exists), key)), kinds / many);
    if (op === 'set') {
      const last = differs(e.add(at, 1), e.lt(at, many - 1));
      b.ifThen(last, () => b.store(target, to, updateAt(at)));
      return;
    }
    b.ifThen(differs(e.sub(at, 1), e.lt(0, at)), () => {
      const [low, high] = [b.reg('low', 'int32'), b.reg('high', 'int32')];
      b.store(low, 0, at);
      b.store(high, 0, e.i32(many));
      // The first element behind this one with another key.
      b.loop(Math.ceil(Math.log2(many + 1)) + 1, () => {
        const [l, h] = [b.load(low, 0), b.load(high, 0)];
        b.ifThen(e.lt(l, h), () => {
          const middle = b.place(e.add(l, e.shr(e.sub(h, l), 1)));
          const same = b.place(e.eq(b.load(sorted, middle), key));
          b.store(low, 0, e.where(same, e.add(middle, 1), l));
          b.store(high, 0, e.where(same, h, middle));
        });
      });
      const sum = b.reg('sum', out.dtype);
      b.store(sum, 0, b.load(target, to));
      const combine = (from: KNode, count: KNode, average: number, value: (i: KNode) => KNode): void => {
        b.loop(w.typical(count, average), (i) =>
          b.store(sum, 0, combineUpdate(w, op, b.load(sum, 0), value(e.add(from, i)))),
        );
      };
      const end = b.place(b.load(low, 0));
      const each = many / kinds;
      if (parts === null) {
        combine(at, e.sub(end, at), each, updateAt);
        return b.store(target, to, b.load(sum, 0));
      }
      // Blocks from one to before the other are of this kind alone; what is left of them and right of them goes one by one.
      const length = e.i32(blockLength);
      const [one, other] = [b.place(e.idiv(e.add(at, blockLength - 1), length)), b.place(e.idiv(end, length))];
      const any = b.place(e.lt(one, other));
      const nothing = e.i32(0);
      const single = Math.min(each, blockLength);
      combine(at, e.sub(e.where(any, e.mul(one, length), end), at), single, updateAt);
      const done = w.temp(parts, 'read');
      const base = e.mul(lead, blocks);
      combine(one, e.where(any, e.sub(other, one), nothing), each / blockLength, (block) =>
        b.load(done, e.add(e.mul(e.add(base, block), inner), column)),
      );
      const tail = e.mul(other, length);
      combine(tail, e.where(any, e.sub(end, tail), nothing), each > blockLength ? single : 0, updateAt);
      b.store(target, to, b.load(sum, 0));
    });
  });
}
