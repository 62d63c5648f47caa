/** What a row of the suite `operations` is: a public operation with operands of a realistic size, and the same in PyTorch. */
import type * as core from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { Operand } from '../work/cases.ts';

export type Result = Tensor | readonly Tensor[] | Promise<Tensor>;

export interface OperationRow {
  /** The name of the operation, and what is special about this use. */
  readonly name: string;
  readonly operands: readonly Operand[];
  /** The same as an expression in Python, of `torch`, `F` and the operands a, b, c, d. */
  readonly torch: string;
  readonly call: (pg: typeof core, ...operands: Tensor[]) => Result;
  /** Whether its gradients are measured too, by all floats that take one. */
  readonly backward: boolean;
  /** True where the numbers are nobody's else: only their count is compared. */
  readonly random: boolean;
}

type Call = OperationRow['call'];

const operand = (kind: Operand['kind'], shape: readonly number[], low: number, high: number): Operand => ({
  kind,
  shape,
  low,
  high,
  gradient: kind === 'float',
  sorted: false,
});

export const floats = (shape: readonly number[], low = -1, high = 1): Operand => operand('float', shape, low, high);
export const constants = (shape: readonly number[], low = -1, high = 1): Operand => ({
  ...floats(shape, low, high),
  gradient: false,
});
export const sortedFloats = (shape: readonly number[]): Operand => ({ ...constants(shape), sorted: true });
export const integers = (shape: readonly number[], low: number, high: number): Operand =>
  operand('integer', shape, low, high);
export const flags = (shape: readonly number[]): Operand => operand('bool', shape, 0, 2);

/** An operation and its gradients. */
export const smooth = (name: string, operands: readonly Operand[], torch: string, call: Call): OperationRow => ({
  name,
  operands,
  torch,
  call,
  backward: true,
  random: false,
});

/** An operation whose gradients are none, or not measured. */
export const plain = (name: string, operands: readonly Operand[], torch: string, call: Call): OperationRow => ({
  ...smooth(name, operands, torch, call),
  backward: false,
});

/** An operation that draws numbers. */
export const drawing = (name: string, operands: readonly Operand[], torch: string, call: Call): OperationRow => ({
  ...plain(name, operands, torch, call),
  random: true,
});
