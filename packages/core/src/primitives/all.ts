/** Every definition: what tests bring in before they record nodes by name, and the proof that none is missing. */
import type { DefinedPrimitive, Definition } from './definition.ts';
import { gatherPrimitive, scatterAddPrimitive } from './gather.ts';
import { scanPrimitive } from './scan.ts';
import { scatterPrimitive } from './scatter.ts';
import { argSortPrimitive } from './sort.ts';

export const definitions: { readonly [P in DefinedPrimitive]: Definition<P> } = {
  gather: gatherPrimitive,
  scatterAdd: scatterAddPrimitive,
  scatter: scatterPrimitive,
  scan: scanPrimitive,
  argSort: argSortPrimitive,
};
