/**
 * Replaces virtual registers by those of the machine. An instruction reads a spilled value from the frame directly if it takes memory;
 * otherwise the value goes through a scratch register.
 */
import type { Builder } from '../form/builder.ts';
import {
  type Arg,
  type Assigned,
  type FinalItem,
  type Held,
  type Ins,
  type Item,
  type Memory,
  type Place,
  poolBase,
  Reg,
  type RegClass,
} from '../form/code.ts';
import type { Classes, Registers } from '../form/machine.ts';
import { copyOf, dropUnread, flatten, isWritten } from './flat.ts';
import { coalesce } from './coalesce.ts';
import { foldLoads } from './operands.ts';
import { intervalsOf, scan } from './scan.ts';

/** Results that are stored behind the instruction. */
type Spilled = { readonly reg: Reg; readonly number: number }[];

const every = ['g', 'v', 'k'] as const;
const none: readonly Held[] = [];
const noSpoils: readonly number[] = [];
const isBrought = (temporary: ReadonlyMap<Reg, number> | null, reg: Reg): boolean => temporary?.has(reg) === true;

/** @param told true to note what each instruction expects where, for the verifier */
export function assign(builder: Builder, registers: Registers, told = false): Assigned {
  foldLoads(builder, registers);
  const flat = flatten(builder, registers);
  dropUnread(flat);
  coalesce(flat);
  const intervals = intervalsOf(flat);
  const places = new Int32Array(flat.regs.length).fill(-1);
  const classes = registers.classes(builder.target, flat.divides);
  for (let i = 0; i < 3; i++) {
    const cls = every[i]!;
    if (scan(intervals, cls, classes.all[cls], places)) continue;
    // Some values are spilled, so scratch registers are needed.
    const rest = classes.all[cls].filter((r) => !classes.scratch[cls].includes(r));
    scan(intervals, cls, rest, places);
  }
  return new Assigner(builder, registers, places, classes.scratch, told).run(flat.items);
}

class Assigner {
  readonly #registers: Registers;
  /** The machine register of each virtual register, by its number, or -1. */
  readonly #places: Int32Array;
  readonly #scratch: Classes['scratch'];
  readonly #vectorBytes: number;
  readonly #told: boolean;
  readonly #slots = new Map<Reg, number>();
  readonly #items: FinalItem[] = [];
  readonly #general = new Set<number>();
  readonly #vectors = new Set<number>();
  /** Which registers those sets have. */
  #generalBits = 0;
  #vectorBits = 0;
  #frameBytes: number;

  constructor(builder: Builder, registers: Registers, places: Int32Array, scratch: Classes['scratch'], told: boolean) {
    this.#registers = registers;
    this.#told = told;
    this.#places = places;
    this.#scratch = scratch;
    this.#vectorBytes = builder.bytes(64);
    this.#frameBytes = builder.frameBytes;
  }

  run(items: readonly Item[]): Assigned {
    for (let at = 0; at < items.length; at++) {
      const item = items[at]!;
      if (item.kind === 'ins') {
        if (this.#told || !this.#plain(item)) this.#instruction(item);
      } else if (item.kind === 'divide') this.#divide(item);
      else this.#items.push(item);
    }
    return {
      items: this.#items,
      frameBytes: Math.ceil(this.#frameBytes / 64) * 64,
      general: this.#general,
      vectors: this.#vectors,
      spilled: this.#slots.size,
    };
  }

  #placeOf(reg: Reg): number {
    return this.#places[reg.id]!;
  }

  /** The slot of a spilled register. */
  #slot(reg: Reg): number {
    let at = this.#slots.get(reg);
    if (at === undefined) {
      const bytes = reg.cls === 'v' ? this.#registers.slotBytes : 8;
      at = Math.ceil(this.#frameBytes / bytes) * bytes;
      this.#frameBytes = at + bytes;
      this.#slots.set(reg, at);
    }
    return at;
  }

  /** The place of a spilled value in memory, and what that memory holds. */
  #inMemory(reg: Reg): { readonly place: Place; readonly held: readonly Held[] } {
    if (reg.home !== null) return { place: this.#fixed(reg.home), held: [] };
    const offset = this.#slot(reg);
    return {
      place: { base: this.#registers.stack, index: -1, scale: 1, offset },
      held: [{ cls: 'slot', number: offset, reg }],
    };
  }

  #fixed({ base, offset }: Memory): Place {
    return { base: base === 'constants' ? poolBase : this.#registers.stack, index: -1, scale: 1, offset };
  }

  /** A register of the machine is written. */
  #written(list: Held[] | null, cls: RegClass, number: number, reg: Reg): void {
    const bit = 1 << number;
    if (cls === 'g') {
      if ((this.#generalBits & bit) === 0) this.#general.add(number);
      this.#generalBits |= bit;
    } else if (cls === 'v') {
      if ((this.#vectorBits & bit) === 0) this.#vectors.add(number);
      this.#vectorBits |= bit;
    }
    list?.push({ cls, number, reg });
  }

  #load(reg: Reg, number: number): void {
    const { place, held } = this.#inMemory(reg);
    const size = reg.cls === 'v' ? this.#vectorBytes : 8;
    const writes: Held[] = [];
    this.#written(writes, reg.cls, number, reg);
    this.#items.push({
      kind: 'ins',
      row: this.#registers.load[reg.cls],
      size,
      places: [number, place],
      mask: 0,
      zero: false,
      reads: held,
      writes,
      spoils: [],
    });
  }

  #store(reg: Reg, number: number): void {
    if (reg.home !== null) return;
    const { place, held } = this.#inMemory(reg);
    const size = reg.cls === 'v' ? this.#vectorBytes : 8;
    const reads: Held[] = [{ cls: reg.cls, number, reg }];
    this.#items.push({
      kind: 'ins',
      row: this.#registers.store[reg.cls],
      size,
      places: [place, number],
      mask: 0,
      zero: false,
      reads,
      writes: held,
      spoils: [],
    });
  }

  /** Handles the usual case: all operands have machine registers. False, with nothing done, for others. */
  #plain(item: Ins): boolean {
    const { row, args, mask } = item;
    const all = this.#places;
    const places: Place[] = new Array(args.length);
    for (let i = 0; i < args.length; i++) {
      const a: Arg = args[i]!;
      let place: Place;
      if (typeof a === 'number') place = a;
      else if (a instanceof Reg) {
        place = all[a.id]!;
        if (place < 0) return false;
      } else {
        const base = a.base instanceof Reg ? all[a.base.id]! : this.#registers.stack;
        const index = a.index === null ? -1 : all[a.index.id]!;
        if (base < 0 || (a.index !== null && index < 0)) return false;
        place = a.base === 'constants' ? this.#fixed(a) : { base, index, scale: a.scale, offset: a.offset };
      }
      places[i] = place;
    }
    const maskPlace = mask === null ? 0 : all[mask.id]!;
    if (maskPlace < 0) return false;
    if (args.length === 2 && places[0] === places[1] && copyOf(this.#registers, item) !== null) return true;
    const { roles } = row;
    for (let i = 0; i < args.length; i++) {
      if (roles[i]! < isWritten) continue;
      const a: Arg = args[i]!;
      if (!(a instanceof Reg) || a.cls === 'k') continue;
      const known = a.cls === 'g' ? this.#generalBits : this.#vectorBits;
      if ((known & (1 << (places[i] as number))) === 0) this.#written(null, a.cls, places[i] as number, a);
    }
    const { size, zero } = item;
    this.#items.push({
      kind: 'ins',
      row,
      size,
      places,
      mask: maskPlace,
      zero,
      reads: none,
      writes: none,
      spoils: noSpoils,
    });
    return true;
  }

  #instruction(item: Ins): void {
    const { row, args, mask } = item;
    const copy = copyOf(this.#registers, item);
    if (copy !== null) {
      const [to, from] = [this.#placeOf(copy.to), this.#placeOf(copy.from)];
      const { cls } = copy.to;
      if (to >= 0 && to === from) {
        if (!this.#told) return;
        this.#items.push({
          kind: 'same',
          from: { cls, number: from, reg: copy.from },
          to: { cls, number: to, reg: copy.to },
        });
        return;
      }
    }
    // A value that can be recomputed need not be stored.
    const [first] = args;
    if (first instanceof Reg && first.home !== null && first.home === args[1] && this.#placeOf(first) < 0) return;
    let temporary: Map<Reg, number> | null = null;
    const taken = { g: 0, v: 0, k: 0 };
    const reads: Held[] | null = this.#told ? [] : null;
    const writes: Held[] | null = this.#told ? [] : null;
    const used = (reg: Reg): number => {
      let number = this.#placeOf(reg);
      if (number < 0) {
        temporary ??= new Map();
        const known = temporary.get(reg);
        number = known ?? this.#scratch[reg.cls][taken[reg.cls]++] ?? -1;
        if (number < 0) throw new Error(`[emit-machine] no register left for ${row.name}`);
        if (known === undefined) {
          temporary.set(reg, number);
          this.#load(reg, number);
        }
      }
      reads?.push({ cls: reg.cls, number, reg });
      return number;
    };
    let hasMemory = false;
    for (let i = 0; i < args.length; i++) {
      const a = args[i]!;
      if (typeof a === 'object' && !(a instanceof Reg)) hasMemory = true;
    }
    const places: Place[] = new Array(args.length);
    let later = 0;
    const keeps = mask !== null && this.#registers.keepsLanes(item);
    for (let i = 0; i < args.length; i++) {
      const a: Arg = args[i]!;
      const o = row.operands[i]!;
      if (typeof a === 'number') places[i] = a;
      else if (!(a instanceof Reg)) {
        const { base, index, scale, offset } = a;
        if (base instanceof Reg)
          places[i] = { base: used(base), index: index === null ? -1 : used(index), scale, offset };
        else if (index === null) places[i] = this.#fixed(a);
        else places[i] = { base: this.#registers.stack, index: used(index), scale, offset };
      } else if (o.writes && !o.reads && !keeps) later |= 1 << i;
      else if (!o.writes && o.folds && !hasMemory && this.#placeOf(a) < 0 && !isBrought(temporary, a)) {
        hasMemory = true;
        const { place, held } = this.#inMemory(a);
        places[i] = place;
        reads?.push(...held);
      } else places[i] = used(a);
    }
    const maskPlace = mask === null ? 0 : used(mask);
    let spilled: Spilled | null = null;
    for (let i = 0; i < args.length; i++) {
      const a: Arg = args[i]!;
      if (!(a instanceof Reg) || !row.operands[i]!.writes) continue;
      let number = this.#placeOf(a);
      if (number < 0) {
        number = this.#scratchFor(a, temporary, taken[a.cls]);
        (spilled ??= []).push({ reg: a, number });
      }
      if ((later & (1 << i)) !== 0) places[i] = number;
      this.#written(writes, a.cls, number, a);
    }
    this.#items.push({
      kind: 'ins',
      row,
      size: item.size,
      places,
      mask: maskPlace,
      zero: item.zero,
      reads: reads ?? none,
      writes: writes ?? none,
      spoils: noSpoils,
    });
    if (spilled !== null) for (const { reg, number } of spilled as Spilled) this.#store(reg, number);
  }

  /** The scratch register for a spilled result, where so many of its class are taken: it may reuse that of an operand. */
  #scratchFor(a: Reg, temporary: ReadonlyMap<Reg, number> | null, taken: number): number {
    const brought: readonly (readonly [Reg, number])[] = temporary === null ? [] : [...temporary];
    const own = brought.find(([r]) => r === a) ?? brought.find(([r]) => r.cls === a.cls);
    return (own?.[0] === a ? own[1] : (this.#scratch[a.cls][taken] ?? own?.[1]))!;
  }

  #divide(item: Item & { readonly kind: 'divide' }): void {
    this.#registers.divide(item, {
      where: (reg) => {
        const number = this.#placeOf(reg);
        return number < 0 ? this.#inMemory(reg) : { place: number, held: [{ cls: 'g', number, reg }] };
      },
      push: (made) => this.#items.push(made),
      placeOf: (reg) => this.#placeOf(reg),
      written: (list, number, reg) => this.#written(list, 'g', number, reg),
    });
  }
}
