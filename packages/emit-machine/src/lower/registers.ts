/**
 * Registers of the program (REG), each element in registers of the machine: made where an element is first met, read in place where the value
 * stays as long as it is used, otherwise copied.
 */
import type { KNode, KNodeOf } from '@polygrad/core/kernel';
import type { Reg, Lowered } from '../form/code.ts';
import { partBytes, partCount } from '../form/vector-parts.ts';
import type { Context } from '../form/machine.ts';
import { isFloat, kindOf, refuse, widthOf } from '../target.ts';
import type { Aliases } from './aliases.ts';

export class Registers {
  readonly #ctx: Context;
  readonly #aliases: Aliases;
  /** The code that follows runs if a bool is true. */
  readonly #open: (bool: KNode) => void;
  readonly #cells = new Map<KNode, (readonly Reg[])[]>();

  constructor(ctx: Context, aliases: Aliases, open: (bool: KNode) => void) {
    this.#ctx = ctx;
    this.#aliases = aliases;
    this.#open = open;
  }

  /** The registers of the machine for one element of a register of the program. */
  #of(mem: KNodeOf<'REG'>, index: KNode): readonly Reg[] {
    const ctx = this.#ctx;
    const at = index.op === 'CONST' ? Number(index.arg.value) : -1;
    if (at < 0 || at >= mem.arg.length)
      refuse(`register ${mem.arg.name}[${mem.arg.length}] needs a constant index in range: got ${index.op}`);
    let all = this.#cells.get(mem);
    if (all === undefined) this.#cells.set(mem, (all = []));
    const kind = kindOf(mem.dtype);
    const scalar = mem.lanes === 1;
    const bits = kind === 'bool' && !scalar && ctx.masks.inBits;
    const cls = scalar ? (isFloat(kind) ? 'v' : 'g') : bits ? 'k' : 'v';
    const count = scalar || bits ? 1 : partCount(ctx, mem.lanes, widthOf(kind));
    return (all[at] ??= Array.from({ length: count }, () => ctx.b.reg(cls, true)));
  }

  /** The value of an element, for a load that stands at `at` in the body. */
  load(n: KNodeOf<'LOAD'>, mem: KNodeOf<'REG'>, at: number): Lowered {
    const cells = this.#of(mem, n.src[1]);
    const width = widthOf(kindOf(n.dtype));
    if (this.#aliases.stays(n, at)) return { parts: cells, width };
    return { parts: cells.map((cell) => this.#ctx.b.copy(cell, partBytes(this.#ctx, n.lanes, width))), width };
  }

  store(n: KNodeOf<'STORE'>, mem: KNodeOf<'REG'>): void {
    const ctx = this.#ctx;
    const { b, masks } = ctx;
    const [, index, value, gate] = n.src;
    const given = ctx.get(value);
    const cells = this.#of(mem, index);
    const kind = kindOf(mem.dtype);
    // Masks of a register have the width of its memory form.
    const parts =
      kind === 'bool' && value.lanes > 1 && !masks.inBits
        ? masks.logic('OR', masks.constant(false, value.lanes), given, value.lanes).parts
        : given.parts;
    if (cells.length !== parts.length) refuse(`a register of ${mem.lanes} lanes is stored ${value.lanes} lanes`);
    if (gate !== undefined) this.#open(gate);
    const bytes = partBytes(ctx, value.lanes, widthOf(kind));
    for (let i = 0; i < parts.length; i++) b.move(cells[i]!, parts[i]!, bytes);
    if (gate !== undefined) b.closeIf();
  }
}
