/** What all ways of scattering share. */
import type { KNode } from '../../ir/ir.ts';
import { combined } from '../../codegen/linearize/combine.ts';
import type { TensorView } from '../lines.ts';
import type { ProgramWriter } from '../program-set.ts';

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
  readonly base: ScatterOperand;
  readonly index: { readonly slot: number; readonly view: TensorView };
  /** Shape of the base with the axis replaced by the shape of the index. */
  readonly updates: ScatterOperand;
}

/** Some axes of a view, by themselves. */
export function axesOf(view: TensorView, from: number, to: number): TensorView {
  return { ...view, shape: view.shape.slice(from, to), strides: view.strides.slice(from, to), shift: 0 };
}

/** What an element becomes by an update. */
export function combineUpdate({ e }: ProgramWriter, op: Exclude<ScatterOp, 'set'>, there: KNode, value: KNode): KNode {
  return combined(e, op === 'add' ? 'sum' : op, there, value);
}
