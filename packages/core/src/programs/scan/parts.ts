/**
 * What all ways of scanning share: the description of a scan, its arithmetic, where elements are.
 */
import type { KNode } from '../../ir/ir.ts';
import { combined } from '../../codegen/linearize/combine.ts';
import { type DType, isFloat, neutral } from '../../shape/dtype.ts';
import type { TensorView } from '../lines.ts';
import type { ProgramWriter } from '../program-set.ts';

export type ScanOp = 'sum' | 'prod' | 'max' | 'min' | 'linear';

/** A tensor that the kernel is given in a slot. */
export interface SlotView {
  readonly slot: number;
  readonly view: TensorView;
}

export interface ScanSpec {
  readonly op: ScanOp;
  readonly axis: number;
  readonly reverse: boolean;
  /** Slot 0, row-major. */
  readonly out: TensorView;
  readonly x: SlotView;
  /** Coefficients of 'linear'. */
  readonly factor: SlotView | null;
}

/** What a scan starts from; the next element combined with it is that element. */
export function scanIdentity(op: ScanOp, dtype: DType): number | bigint {
  if (op === 'linear') return 0;
  return op === 'sum' && isFloat(dtype) ? -0 : neutral(op, dtype);
}

/** The running value after an element. */
export function runningValue({ e }: ProgramWriter, op: ScanOp, running: KNode, x: KNode, factor: KNode | null): KNode {
  return op === 'linear' ? e.add(e.mul(factor!, running), x) : combined(e, op, running, x);
}

/** The tensors of a scan in a program. */
export interface Memory {
  readonly out: KNode;
  readonly x: KNode;
  readonly factor: KNode | null;
}

/** Declares the memory of a scan; `access` null: without the result. */
export function memoryOf(w: ProgramWriter, { out, x, factor }: ScanSpec, access: 'write' | 'readwrite' | null): Memory {
  return {
    out: access === null ? w.e.i32(0) : w.param(0, out.dtype, access, out.span),
    x: w.param(x.slot, x.view.dtype, 'read', x.view.span),
    factor: factor && w.param(factor.slot, factor.view.dtype, 'read', factor.view.span),
  };
}

/** Where an element of a line is: the p-th in the order of the scan. */
export function placed(
  w: ProgramWriter,
  view: TensorView,
  axis: number,
  start: KNode,
  p: KNode,
  reverse: boolean,
): KNode {
  const { e } = w;
  const n = view.shape[axis]!;
  const at = reverse ? e.sub(n - 1, p) : p;
  return e.add(start, e.mul(at, view.strides[axis]!));
}
