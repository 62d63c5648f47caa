/** arm64 (ARMv8-A with its vectors of 16 bytes, NEON) as a machine; masks are in vectors. */
import { LaneMasks } from '../lower/lane-masks.ts';
import type { Machine } from '../form/machine.ts';
import { access } from './access.ts';
import { basics } from './basics.ts';
import { casts, halves } from './casts.ts';
import { laneForms } from './lane-masks.ts';
import { lanes } from './lanes.ts';
import { registers } from './registers.ts';
import { rowOf } from './rows.ts';
import { compareIntegers, scalarOperation } from './scalars.ts';
import { vectorOperation } from './vectors.ts';
import { Arm64Writer } from './writer.ts';

export const arm64: Machine = {
  rowOf,
  registers,
  basics,
  access,
  lanes,
  operations: {
    scalar: scalarOperation,
    compare: compareIntegers,
    vector: vectorOperation,
    // Its maximum is NaN where one operand is.
    extremum: () => null,
    rotation: () => null,
  },
  casts,
  halves,
  masks: (ctx) => new LaneMasks(ctx, laneForms),
  writer: (assigned, constantBytes, lines) => new Arm64Writer(assigned, constantBytes, lines),
};
