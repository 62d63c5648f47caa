/**
 * Scatters: the base, then every update in order, each slice by one group.
 *
 * Updates of one element are combined in their order, so results are the same bits everywhere without atomics. Small sums are
 * reductions over all updates and never come here. Engines with groups of threads take an element of a slice to a thread, and sort
 * many updates first (sorted.ts).
 */
import type { CodegenCaps, Lowered } from '../../codegen/lowering.ts';
import type { KNode } from '../../ir/ir.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import { isRowMajor, sizeOf } from '../../shape/view.ts';
import { positionOf, type TensorView } from '../lines.ts';
import { ProgramSet, type ProgramWriter } from '../program-set.ts';
import { axesOf, combineUpdate, type ScatterSpec } from './parts.ts';
import { updateSorted } from './sorted.ts';

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
    copyBase(set, spec, narrow, copyElements);
    update(set, spec, narrow, sliceWidth);
    return set.result();
  }
  const width = sizeOf(spec.out.shape) % narrow === 0 ? narrow : 1;
  copyBase(set, spec, width, width);
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

function contiguous({ shape, strides }: TensorView): boolean {
  return isRowMajor(shape, { strides, offset: 0 });
}

function copyBase(set: ProgramSet, { out, base }: ScatterSpec, lanes: number, each: number): void {
  const total = sizeOf(out.shape);
  const groups = Math.ceil(total / each);
  set.add('_base', groups, (w) => {
    const { b, e, group } = w;
    const target = w.param(0, out.dtype, 'write', out.span);
    const source = 'constant' in base ? null : w.param(base.slot, out.dtype, 'read', base.view.span);
    const vector = 'constant' in base || contiguous(base.view) ? lanes : 1;
    const start = e.mul(group, each);
    const length = total % each === 0 ? e.i32(each) : e.min(each, e.sub(total, start));
    strips(w, length, vector, (from, width) => {
      const at = e.add(start, from);
      const value =
        'constant' in base
          ? e.constant(out.dtype, base.constant, width)
          : b.load(source!, positionOf(e, base.view, at), width);
      b.store(target, e.add(at, out.shift), value);
    });
  });
}

function update(set: ProgramSet, spec: ScatterSpec, lanes: number, most: number): void {
  const { op, axis, out, index, updates } = spec;
  const rank = index.view.shape.length;
  const inner = sizeOf(out.shape.slice(axis + 1));
  const width = Math.min(inner, most);
  const pieces = Math.ceil(inner / width);
  const before = sizeOf(out.shape.slice(0, axis));
  set.add('_updates', before * pieces, (w) => {
    const { b, e, group } = w;
    const target = w.param(0, out.dtype, op === 'set' ? 'write' : 'readwrite', out.span);
    const which = w.param(index.slot, 'int32', 'read', index.view.span);
    const from = 'constant' in updates ? null : w.param(updates.slot, out.dtype, 'read', updates.view.span);
    const lead = e.idiv(group, pieces);
    const start = e.mul(e.irem(group, pieces), width);
    const length = inner % width === 0 ? e.i32(width) : e.min(width, e.sub(inner, start));
    const size = out.shape[axis]!;
    const slice = e.add(out.shift, e.add(e.mul(lead, size * inner), start));
    const parts =
      'constant' in updates
        ? null
        : {
            lead: positionOf(e, axesOf(updates.view, 0, axis), lead),
            middle: axesOf(updates.view, axis, axis + rank),
            tail: axesOf(updates.view, axis + rank, updates.view.shape.length),
            shift: e.i32(updates.view.shift),
          };
    const vector = width >= lanes && (parts === null || contiguous(parts.tail)) ? lanes : 1;
    b.loop(sizeOf(index.view.shape), (t) => {
      const row = b.place(e.mul(b.load(which, positionOf(e, index.view, t)), inner));
      const begin = parts && e.add(e.add(parts.shift, parts.lead), positionOf(e, parts.middle, t));
      strips(w, length, vector, (j, many) => {
        const at = e.add(e.add(slice, row), j);
        const value =
          parts === null
            ? e.constant(out.dtype, (updates as { constant: number | bigint }).constant, many)
            : b.load(from!, e.add(begin!, positionOf(e, parts.tail, e.add(start, j))), many);
        b.store(target, at, op === 'set' ? value : combineUpdate(w, op, b.load(target, at, many), value));
      });
    });
  });
}
