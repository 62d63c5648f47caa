/** x86-64 as a machine: AVX2 with masks in vectors, AVX-512 with masks in mask registers. */
import { LaneMasks } from '../lower/lane-masks.ts';
import type { Machine } from '../form/machine.ts';
import { access } from './access.ts';
import { basics } from './basics.ts';
import { BitMasks } from './bit-masks.ts';
import { casts, halves } from './casts.ts';
import { laneForms } from './lane-masks.ts';
import { lanes } from './lanes.ts';
import { folds } from './operands.ts';
import { registers } from './registers.ts';
import { rowOf } from './rows.ts';
import { compareIntegers, scalarOperation } from './scalars.ts';
import { vectorOperation } from './vectors.ts';
import { X64Writer } from './writer.ts';

const common: Omit<Machine, 'masks'> = {
  rowOf,
  registers,
  basics,
  access,
  lanes,
  operations: {
    scalar: scalarOperation,
    compare: compareIntegers,
    vector: vectorOperation,
    // The instructions return their second operand for NaN and for equal numbers.
    extremum({ b }, kind, most, bytes) {
      const key = `v${most ? 'max' : 'min'}p${kind === 'f32' ? 's' : 'd'}`;
      return ([x, y]) => b.op(key, bytes, x!, y!);
    },
    rotation({ b, target }, width, by, bytes) {
      if (target.isa !== 'x64-v4') return null;
      return ([x]) => b.op(width === 4 ? 'vprold' : 'vprolq', bytes, x!, by);
    },
  },
  casts,
  halves,
  writer: (assigned, _constantBytes, lines) => new X64Writer(assigned, lines),
};

export const x64v3: Machine = { ...common, masks: (ctx) => new LaneMasks(ctx, laneForms) };
export const x64v4: Machine = {
  ...common,
  registers: { ...registers, folds },
  masks: (ctx) => new BitMasks(ctx),
};
