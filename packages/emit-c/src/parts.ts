/**
 * Values as text. A value of any number of lanes is a list of parts, each no wider than a vector of the dialect. So 11 lanes are
 * 8 + 2 + 1 in OpenCL C and 4 + 4 + 3 in WGSL. Values of equal lanes have equal parts.
 */
import type { DType } from './kernel.ts';

export interface Part {
  readonly text: string;
  readonly dtype: DType;
  readonly lanes: number;
  /** Needs no parentheses as an operand. */
  readonly atom: boolean;
  /** A name or literal that means the same wherever it is visible; free to repeat. */
  readonly stable: boolean;
  /** A literal, or a vector of literals. */
  readonly constant: boolean;
  /** The stable scalars a vector was made of. */
  readonly elements?: readonly Part[];
}

export type Value = readonly Part[];

/** A literal or something made of literals alone. */
export function literal(text: string, dtype: DType, lanes = 1): Part {
  return { text, dtype, lanes, atom: true, stable: true, constant: true };
}

/** The name of something that never changes. */
export function name(text: string, dtype: DType, lanes = 1): Part {
  return { text, dtype, lanes, atom: true, stable: true, constant: false };
}

/** A call, a member, an element: no parentheses needed. */
export function call(text: string, dtype: DType, lanes = 1): Part {
  return { text, dtype, lanes, atom: true, stable: false, constant: false };
}

/** An expression with operators. */
export function expression(text: string, dtype: DType, lanes = 1): Part {
  return { text, dtype, lanes, atom: false, stable: false, constant: false };
}

/** A vector written as a call with its scalars, or one scalar for all lanes. */
export function vectorOf(text: string, dtype: DType, lanes: number, scalars: readonly Part[]): Part {
  const constant = scalars.every((s) => s.constant);
  const made = { ...call(text, dtype, lanes), constant, stable: constant };
  if (!scalars.every((s) => s.stable)) return made;
  return { ...made, elements: scalars.length === 1 ? new Array<Part>(lanes).fill(scalars[0]!) : scalars };
}

/** The text as an operand. */
export function operand(p: Part): string {
  return p.atom ? p.text : `(${p.text})`;
}

/** Sizes of the parts of a value, given the vector sizes of the dialect in falling order, the last one 1. */
export function partLanes(lanes: number, widths: readonly number[]): readonly number[] {
  const parts: number[] = [];
  for (let left = lanes; left > 0; ) {
    const width = widths.find((w) => w <= left) as number;
    parts.push(width);
    left -= width;
  }
  return parts;
}
