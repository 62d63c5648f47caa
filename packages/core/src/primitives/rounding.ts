/** Rounding to integers, up, towards zero and to the nearest: steps, whose slope is zero wherever they have one. */
import { ceil, round, trunc } from '../arithmetic/decompose/basic.ts';
import type { Definition } from '../graph/definition.ts';
import { unaryFunction } from './elementwise.ts';

const flat = (): null => null;

export const ceilPrimitive: Definition<'ceil'> = /* @__PURE__ */ unaryFunction('ceil', { CEIL: ceil }, flat);

export const truncPrimitive: Definition<'trunc'> = /* @__PURE__ */ unaryFunction('trunc', { TRUNC: trunc }, flat);

export const roundPrimitive: Definition<'round'> = /* @__PURE__ */ unaryFunction('round', { ROUND: round }, flat);
