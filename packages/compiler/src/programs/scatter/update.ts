/**
 * Scatters: copies the base, unless the result already has its memory, then applies every update in order, each slice by one group.
 *
 * Updates of one element are combined in their order, so results are the same bits everywhere, without atomics. Small sums are
 * reductions over all updates and never come here. Engines with groups of threads give an element of a slice to a thread, and sort
 * the updates first where there are many.
 */
import { combined } from '../../codegen/linearize/reduce.ts';
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { isRowMajor, sizeOf } from '../../shape/view.ts';
import { positionOf, ProgramSet, type ProgramWriter, type TensorView, type Temp } from '../program-set.ts';
import { bisect } from '../groups.ts';
import { sortByGroups } from '../sort/sort.ts';

// What all ways of scattering share.

export type ScatterOp = 'add' | 'set' | 'prod' | 'max' | 'min';

/** A tensor of the kernel, or the number that all its elements are. */
export type ScatterOperand =
  | { readonly slot: number; readonly view: TensorView }
  | { readonly constant: number | bigint };

export interface ScatterSpec {
  readonly op: ScatterOp;
  readonly axis: number;
  /** Row-major. */
  readonly out: TensorView;
  /** None: it is in the memory of `out` already. */
  readonly base: ScatterOperand | null;
  readonly index: { readonly slot: number; readonly view: TensorView };
  /** Shape of the base with the axis replaced by the shape of the index. */
  readonly updates: ScatterOperand;
}

/** Rows of slices before the axis, elements of a slice, and updates of each row. */
function sizesOf({ axis, out, index }: ScatterSpec): { readonly before: number; readonly inner: number; many: number } {
  const { shape } = out;
  return { before: sizeOf(shape.slice(0, axis)), inner: sizeOf(shape.slice(axis + 1)), many: sizeOf(index.view.shape) };
}

/** Axes of updates behind those of the axis and of the index. */
function cutsOf({ axis, index }: ScatterSpec): readonly [number, number] {
  return [axis, axis + index.view.shape.length];
}

/** Some axes of a view, by themselves. */
function axesOf(view: TensorView, from: number, to: number = view.shape.length): TensorView {
  return { ...view, shape: view.shape.slice(from, to), strides: view.strides.slice(from, to), shift: 0 };
}

/**
 * Opens an operand: reads an element, or `lanes` of them. It is given by row-major positions: one among the axes before each cut, and one
 * among those behind the last.
 */
function opened(
  { b, e, ...w }: ProgramWriter,
  operand: ScatterOperand,
  dtype: DType,
  cuts: readonly number[],
): (at: readonly KNode[], lanes?: number) => KNode {
  if ('constant' in operand) return (_at, lanes) => e.constant(dtype, operand.constant, lanes);
  const { slot, view } = operand;
  const memory = w.param(slot, dtype, 'read', view.span);
  const parts = [0, ...cuts].map((from, i) => axesOf(view, from, cuts[i]));
  return (at, lanes) => {
    const place = at.reduce((sum, x, i) => e.add(sum, positionOf(e, parts[i]!, x)), e.i32(view.shift) as KNode);
    return b.load(memory, place, lanes);
  };
}

/** Lanes of vectors that an operand can be read in, by its axes from `from` on. */
function lanesOf(operand: ScatterOperand, from: number, lanes: number): number {
  if ('constant' in operand) return lanes;
  const { shape, strides } = axesOf(operand.view, from);
  return isRowMajor(shape, { strides, offset: 0 }) ? lanes : 1;
}

/** What an element becomes by an update. */
function combineUpdate({ e }: ProgramWriter, op: Exclude<ScatterOp, 'set'>, there: KNode, value: KNode): KNode {
  return combined(e, op === 'add' ? 'sum' : op, there, value);
}

// Scatters of many updates on engines with groups of threads: updates are sorted by where they go, in order among equals, and the
// first of each kind combines all of its kind.
//
// Elements are combined in the order of their updates, without atomics: the same bits as one update after another. Where many updates
// go to one place, blocks of them are combined first, side by side: one thread would be busy with millions.

/** Updates that are combined first where all of them go to one place. */
const blockLength = 512;

/** Updates in the order of where they go. */
interface SortedUpdates {
  /** Where each goes: positions along the axis. */
  readonly keys: Temp;
  /** Which update each is. */
  readonly order: Temp;
  /** Different places at most. */
  readonly kinds: number;
}

/** Sums of blocks of sorted updates, and how many blocks a row has. */
interface BlockSums {
  readonly sums: Temp;
  readonly blocks: number;
}

function updateSorted(set: ProgramSet, spec: ScatterSpec, caps: CodegenCaps): void {
  const sorted = sortUpdates(set, spec, caps);
  combineSorted(set, spec, sorted, combineBlocks(set, spec, sorted, caps));
}

function sortUpdates(set: ProgramSet, { axis, out, index }: ScatterSpec, caps: CodegenCaps): SortedUpdates {
  const many = sizeOf(index.view.shape);
  const size = out.shape[axis]!;
  const { keys, order } = sortByGroups(
    set,
    {
      lines: 1,
      n: many,
      count: many,
      from: 0,
      words: 1,
      bits: Math.ceil(Math.log2(size)),
      adjacent: false,
      open: (w) => {
        const memory = w.param(index.slot, 'int32', 'read', index.view.span);
        return (_line, i) => w.e.bitcast(w.b.load(memory, positionOf(w.e, index.view, i)), 'uint32');
      },
      result: null,
    },
    caps,
  )!;
  return { keys: keys[0]!, order, kinds: Math.min(many, size) };
}

/** Opens the updates: reads one by its place among the sorted ones, for the rows of `lead` and a column of them. */
function openSorted(
  w: ProgramWriter,
  spec: ScatterSpec,
  { order }: SortedUpdates,
  lead: KNode,
  column: KNode,
): (sortedAt: KNode) => KNode {
  const read = opened(w, spec.updates, spec.out.dtype, cutsOf(spec));
  if ('constant' in spec.updates) return () => read([]);
  const positions = w.temp(order, 'read');
  return (sortedAt) => read([lead, w.b.load(positions, sortedAt), column]);
}

/** Combines each block whose updates all go to one place; null where there are too few updates for blocks. */
function combineBlocks(set: ProgramSet, spec: ScatterSpec, sorted: SortedUpdates, caps: CodegenCaps): BlockSums | null {
  const { op, out } = spec;
  const { before, inner, many } = sizesOf(spec);
  if (op === 'set' || caps.maxBindings < 5 || many < 4 * blockLength) return null;
  const blocks = Math.floor(many / blockLength);
  const sums = set.temp(out.dtype, before * blocks * inner);
  set.add('_blocks', before * blocks * inner, (w) => {
    const { b, e, group } = w;
    const keys = w.temp(sorted.keys, 'read');
    const row = e.idiv(group, inner);
    const first = b.place(e.mul(e.irem(row, blocks), blockLength));
    const last = e.add(first, blockLength - 1);
    const updateAt = openSorted(w, spec, sorted, e.idiv(row, blocks), e.irem(group, inner));
    const target = w.temp(sums, 'write');
    const same = w.typical(e.eq(b.load(keys, first), b.load(keys, last)), Math.max(0, 1 - sorted.kinds / blocks));
    b.ifThen(same, () => {
      const sum = b.reg('sum', out.dtype);
      b.store(sum, 0, updateAt(first));
      b.loop(blockLength - 1, (i) =>
        b.store(sum, 0, combineUpdate(w, op, b.load(sum, 0), updateAt(e.add(e.add(first, 1), i)))),
      );
      b.store(target, group, b.load(sum, 0));
    });
  });
  return { sums, blocks };
}

/** The first of each kind combines all of its kind; with `set`, the last of each kind is the one that stays. */
function combineSorted(set: ProgramSet, spec: ScatterSpec, sorted: SortedUpdates, parts: BlockSums | null): void {
  const { op, axis, out } = spec;
  const { before, inner, many } = sizesOf(spec);
  const { kinds } = sorted;
  set.add('_sorted', before * many * inner, (w) => {
    const { b, e, group } = w;
    const target = w.param(0, out.dtype, op === 'set' ? 'write' : 'readwrite', out.span);
    const keys = w.temp(sorted.keys, 'read');
    const column = e.irem(group, inner);
    const row = e.idiv(group, inner);
    const [lead, at] = [e.idiv(row, many), e.irem(row, many)];
    const updateAt = openSorted(w, spec, sorted, lead, column);
    const key = b.load(keys, at);
    const slice = e.add(out.shift, e.mul(e.add(e.mul(lead, out.shape[axis]!), e.bitcast(key, 'int32')), inner));
    const to = e.add(slice, column);
    const differs = (neighbour: KNode, exists: KNode): KNode =>
      w.typical(e.or(e.not(exists), e.ne(b.load(keys, neighbour, 1, exists), key)), kinds / many);
    if (op === 'set') {
      const last = differs(e.add(at, 1), e.lt(at, many - 1));
      b.ifThen(last, () => b.store(target, to, updateAt(at)));
      return;
    }
    b.ifThen(differs(e.sub(at, 1), e.lt(0, at)), () => {
      const end = b.place(bisect(w, at, e.i32(many), many, (i) => e.eq(b.load(keys, i), key)));
      const sum = b.reg('sum', out.dtype);
      b.store(sum, 0, b.load(target, to));
      const combine: CombineRun = (from, count, average, value) =>
        b.loop(w.typical(count, average), (i) =>
          b.store(sum, 0, combineUpdate(w, op, b.load(sum, 0), value(e.add(from, i)))),
        );
      const run = { at, end, each: many / kinds };
      if (parts === null) combine(at, e.sub(end, at), run.each, updateAt);
      else combineByBlocks(w, parts, run, { combine, updateAt, lead, column, inner });
      b.store(target, to, b.load(sum, 0));
    });
  });
}

/** Combines `count` values from one on into the sum. `average`: how many there are typically. */
type CombineRun = (from: KNode, count: KNode, average: number, value: (i: KNode) => KNode) => void;

/** Combines updates of one place, `at` to before `end` among the sorted ones. Blocks inside are combined already; the updates before and after these go one by one. */
function combineByBlocks(
  w: ProgramWriter,
  { sums, blocks }: BlockSums,
  { at, end, each }: { readonly at: KNode; readonly end: KNode; readonly each: number },
  slice: {
    readonly combine: CombineRun;
    readonly updateAt: (sortedAt: KNode) => KNode;
    readonly lead: KNode;
    readonly column: KNode;
    readonly inner: number;
  },
): void {
  const { b, e } = w;
  const { combine, updateAt, lead, column, inner } = slice;
  const length = e.i32(blockLength);
  const [one, other] = [b.place(e.idiv(e.add(at, blockLength - 1), length)), b.place(e.idiv(end, length))];
  const any = b.place(e.lt(one, other));
  const nothing = e.i32(0);
  const single = Math.min(each, blockLength);
  combine(at, e.sub(e.where(any, e.mul(one, length), end), at), single, updateAt);
  const done = w.temp(sums, 'read');
  const base = e.mul(lead, blocks);
  combine(one, e.where(any, e.sub(other, one), nothing), each / blockLength, (block) =>
    b.load(done, e.add(e.mul(e.add(base, block), inner), column)),
  );
  const tail = e.mul(other, length);
  combine(tail, e.where(any, e.sub(end, tail), nothing), each > blockLength ? single : 0, updateAt);
}

/** Elements that lie next to each other in a slice and are done by one group. */
const sliceWidth = 64;
/** Updates from which on groups of threads sort them first; fewer are gone through by a thread for each element of a slice. */
const manyUpdates = 256;
/** Elements of the base that one group copies. */
const copyElements = 1 << 13;

export function lowerScatter(spec: ScatterSpec, caps: CodegenCaps): Lowered {
  const set = new ProgramSet(`scatter_${spec.op}_${spec.out.shape.join('x')}`, caps);
  const lanes = Math.max(1, Math.floor(caps.vectorBytes / dtypeInfo[spec.out.dtype].bytes));
  const narrow = dtypeInfo[spec.out.dtype].bytes < 4 ? 1 : lanes;
  if (!caps.simt) {
    if (spec.base !== null) copyBase(set, spec.out, spec.base, narrow, copyElements);
    update(set, spec, narrow, sliceWidth);
    return set.result();
  }
  const width = sizeOf(spec.out.shape) % narrow === 0 ? narrow : 1;
  if (spec.base !== null) copyBase(set, spec.out, spec.base, width, width);
  if (sizeOf(spec.index.view.shape) > manyUpdates) updateSorted(set, spec, caps);
  else update(set, spec, 1, 1);
  return set.result();
}

/** Runs `body` for 0 .. length-1 in vectors, then one by one. */
function strips(w: ProgramWriter, length: KNode, lanes: number, body: (from: KNode, lanes: number) => void): void {
  const { b, e } = w;
  if (lanes === 1) {
    b.loop(length, (i) => body(i, 1));
    return;
  }
  const whole = e.idiv(length, lanes);
  b.loop(whole, (i) => body(e.mul(i, lanes), lanes));
  b.loop(e.irem(length, lanes), (i) => body(e.add(e.mul(whole, lanes), i), 1));
}

function copyBase(set: ProgramSet, out: TensorView, base: ScatterOperand, lanes: number, each: number): void {
  const total = sizeOf(out.shape);
  const groups = Math.ceil(total / each);
  set.add('_base', groups, (w) => {
    const { b, e, group } = w;
    const target = w.param(0, out.dtype, 'write', out.span);
    const read = opened(w, base, out.dtype, []);
    const start = e.mul(group, each);
    const length = total % each === 0 ? e.i32(each) : e.min(each, e.sub(total, start));
    strips(w, length, lanesOf(base, 0, lanes), (from, width) => {
      const at = e.add(start, from);
      b.store(target, e.add(at, out.shift), read([at], width));
    });
  });
}

function update(set: ProgramSet, spec: ScatterSpec, lanes: number, most: number): void {
  const { op, axis, out, index, updates } = spec;
  const { before, inner, many } = sizesOf(spec);
  const width = Math.min(inner, most);
  const pieces = Math.ceil(inner / width);
  const cuts = cutsOf(spec);
  set.add('_updates', before * pieces, (w) => {
    const { b, e, group } = w;
    const target = w.param(0, out.dtype, op === 'set' ? 'write' : 'readwrite', out.span);
    const which = w.param(index.slot, 'int32', 'read', index.view.span);
    const read = opened(w, updates, out.dtype, cuts);
    const lead = e.idiv(group, pieces);
    const start = e.mul(e.irem(group, pieces), width);
    const length = inner % width === 0 ? e.i32(width) : e.min(width, e.sub(inner, start));
    const slice = e.add(out.shift, e.add(e.mul(lead, out.shape[axis]! * inner), start));
    const vector = width >= lanes ? lanesOf(updates, cuts[1], lanes) : 1;
    b.loop(many, (t) => {
      const row = b.place(e.mul(b.load(which, positionOf(e, index.view, t)), inner));
      strips(w, length, vector, (j, side) => {
        const at = e.add(e.add(slice, row), j);
        const value = read([lead, t, e.add(start, j)], side);
        b.store(target, at, op === 'set' ? value : combineUpdate(w, op, b.load(target, at, side), value));
      });
    });
  });
}
