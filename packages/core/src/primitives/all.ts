/** Every definition: what tests bring in before they record nodes by name, and the proof that none is missing. */
import type { BinaryPrimitive, UnaryPrimitive } from '../graph/attrs.ts';
import type {
  BinaryOperation,
  DefinedBinary,
  DefinedPrimitive,
  DefinedUnary,
  Definition,
  UnaryOperation,
} from '../graph/definition.ts';
import {
  coshPrimitive,
  erfPrimitive,
  exp2Primitive,
  expm1Primitive,
  log10Primitive,
  log1pPrimitive,
  log2Primitive,
  powPrimitive,
  sinhPrimitive,
  tanhPrimitive,
} from './exponential.ts';
import { gatherPrimitive, scatterAddPrimitive } from './gather.ts';
import { fmaPrimitive } from './fma.ts';
import { fmodPrimitive } from './remainder.ts';
import { ceilPrimitive, roundPrimitive, truncPrimitive } from './rounding.ts';
import { scanPrimitive } from './scan.ts';
import { scatterPrimitive } from './scatter.ts';
import { argSortPrimitive } from './sort.ts';
import {
  acosPrimitive,
  asinPrimitive,
  atan2Primitive,
  atanPrimitive,
  cosPrimitive,
  sinPrimitive,
  tanPrimitive,
} from './trigonometric.ts';

export const definitions: { readonly [P in DefinedPrimitive]: Definition<P> } = {
  ceil: ceilPrimitive,
  trunc: truncPrimitive,
  round: roundPrimitive,
  exp2: exp2Primitive,
  expm1: expm1Primitive,
  log2: log2Primitive,
  log10: log10Primitive,
  log1p: log1pPrimitive,
  sin: sinPrimitive,
  cos: cosPrimitive,
  tan: tanPrimitive,
  asin: asinPrimitive,
  acos: acosPrimitive,
  atan: atanPrimitive,
  sinh: sinhPrimitive,
  cosh: coshPrimitive,
  tanh: tanhPrimitive,
  erf: erfPrimitive,
  pow: powPrimitive,
  atan2: atan2Primitive,
  fmod: fmodPrimitive,
  fma: fmaPrimitive,
  gather: gatherPrimitive,
  scatterAdd: scatterAddPrimitive,
  scatter: scatterPrimitive,
  scan: scanPrimitive,
  argSort: argSortPrimitive,
};

/** A primitive given by its name, as `unary` and `binary` take it. */
export function unaryByName(op: UnaryPrimitive): UnaryOperation {
  return op in definitions ? definitions[op as DefinedUnary] : (op as Exclude<UnaryPrimitive, DefinedUnary>);
}

export function binaryByName(op: BinaryPrimitive): BinaryOperation {
  return op in definitions ? definitions[op as DefinedBinary] : (op as Exclude<BinaryPrimitive, DefinedBinary>);
}
