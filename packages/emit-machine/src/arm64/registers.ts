/** Registers of arm64 for allocation. */
import type { Row } from '../form/code.ts';
import type { Registers } from '../form/machine.ts';
import { rowOf } from './rows.ts';

const range = (from: number, to: number): readonly number[] => Array.from({ length: to - from }, (_, i) => from + i);

/**
 * General registers, those that a function may change first. 16 and 17 are the writer's; 18 belongs to some systems, 29 and 30 to the caller.
 */
const general = [...range(0, 16), ...range(19, 29)];
/** Of 8 to 15 the callee must preserve the lower halves. */
const vectors = [...range(0, 8), ...range(16, 32), ...range(8, 16)];

const [copy, copyVector] = [rowOf('mov'), rowOf('mov:16b')];

/** Constants and splats, which are dead where multiply-adds take the operand from its source. */
const idle: ReadonlySet<Row> = new Set(['mov:constant', 'dup:4s', 'dup:2d'].map(rowOf));

export const registers: Registers = {
  classes({ registers: few }) {
    const v = vectors.slice(0, few?.vector);
    return {
      all: { g: general.slice(0, few?.general), v, k: [] },
      scratch: { g: [13, 14, 15], v: v.slice(-3), k: [] },
    };
  },
  stack: 31,
  load: { g: rowOf('ldr:x'), v: rowOf('ldr:q'), k: rowOf('ldr:x') },
  store: { g: rowOf('str:x'), v: rowOf('str:q'), k: rowOf('str:x') },
  slotBytes: 16,
  isCopy: ({ row, size }) => (row === copy && size === 8) || row === copyVector,
  mayGo: (row) => idle.has(row),
  keepsLanes: () => false,
  divide() {
    throw new Error('[emit-machine] arm64 divides in one instruction');
  },
};
