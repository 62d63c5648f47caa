/** Registers of x86-64 for allocation: which there are, how they are copied, spilled and divided with. */
import type { Held, Item, Place, Reg } from '../form/code.ts';
import type { Classes, DivisionParts, Registers } from '../form/machine.ts';
import type { MachineTarget } from '../target.ts';
import { rowOf } from './rows.ts';

/** Fixed registers of division: the dividend, and its upper half or the remainder. */
const quotient = 0;
const remainder = 2;

/** General registers, caller-saved ones first. */
const generalRegisters = [1, 6, 7, 8, 9, 10, 11, 0, 2, 3, 5, 12, 13, 14, 15];
const scratchGeneral = [0, 2, 1];

/** For each target, without divisions and with them. */
const known = new WeakMap<MachineTarget, Classes[]>();

function classes(target: MachineTarget, divides: boolean): Classes {
  let both = known.get(target);
  if (both === undefined) known.set(target, (both = []));
  return (both[Number(divides)] ??= classesOf(target, divides));
}

function classesOf({ isa, registers }: MachineTarget, divides: boolean): Classes {
  const count = isa === 'x64-v4' ? 32 : 16;
  const vectors = Array.from({ length: count }, (_, i) => i);
  const general = generalRegisters.filter((r) => !divides || (r !== quotient && r !== remainder));
  return {
    all: {
      g: general.slice(0, registers?.general),
      v: vectors.slice(0, registers?.vector),
      k: [1, 2, 3, 4, 5, 6, 7].slice(0, registers?.mask),
    },
    scratch: {
      g: scratchGeneral,
      v: vectors.slice(0, registers?.vector).slice(-3),
      k: [1, 2, 3, 4, 5, 6, 7].slice(0, registers?.mask).slice(-2),
    },
  };
}

function divide({ signed, rest, size, args }: Item & { readonly kind: 'divide' }, parts: DivisionParts): void {
  const [d, a, b] = args as [Reg, Reg, Reg];
  const add = (
    key: string,
    places: Place[],
    reads: readonly Held[],
    writes: readonly Held[],
    spoils: readonly number[],
    bytes: number = size,
  ): void =>
    parts.push({ kind: 'ins', row: rowOf(key), size: bytes, places, mask: 0, zero: false, reads, writes, spoils });
  const [x, y] = [parts.where(a), parts.where(b)];
  add('mov', [quotient, x.place], x.held, [], [quotient]);
  if (signed) add(size === 8 ? 'cqo' : 'cdq', [], [], [], [remainder]);
  else add('xor', [remainder, remainder], [], [], [remainder], 4);
  add(signed ? 'idiv' : 'div', [y.place], y.held, [], [quotient, remainder]);
  const result = rest ? remainder : quotient;
  const to = parts.placeOf(d);
  if (to >= 0) {
    const writes: Held[] = [];
    parts.written(writes, to, d);
    add('mov', [to, result], [], writes, [], 8);
  } else {
    const { place, held } = parts.where(d);
    add('mov:store', [place, result], [], held, [], 8);
  }
}

const constantMove = rowOf('mov:constant');

export const registers: Registers = {
  classes,
  stack: 4,
  load: { g: rowOf('mov'), v: rowOf('vmovups'), k: rowOf('kmovq') },
  store: { g: rowOf('mov:store'), v: rowOf('vmovups:store'), k: rowOf('kmovq:store') },
  slotBytes: 64,
  isCopy: ({ row: { name }, size }) => name === 'vmovaps' || name === 'kmovq' || (name === 'mov' && size === 8),
  mayGo: (row) => row === constantMove,
  // Blends take them from an operand.
  keepsLanes: ({ mask, zero, row }) => mask !== null && !zero && !row.name.startsWith('vblendm'),
  divide,
};
