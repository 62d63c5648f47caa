/**
 * Addresses of tensors and of group memory.
 *
 * Tensors have 64-bit addresses: base + index * bytes in one instruction. Group memory has 32-bit ones. A constant that is added to an index
 * becomes the offset of the access, so that neighbours share one register.
 */
import { highOf, type KNode, type KNodeOf, lowOf, type Program } from '@polygrad/core/kernel';
import { bytesOf } from './dtypes.ts';
import type { Writer } from './writer.ts';

/** Memory with an address. */
export type Addressed = KNodeOf<'PARAM'> | KNodeOf<'SHARED'>;

/** An index as a value and a constant added to it. */
export interface SplitIndex {
  /** Null where the index is a constant. */
  readonly root: KNode | null;
  readonly offset: number;
}

const largest = 2 ** 31 - 1;
/** Offsets of an access in bytes, with room for the lanes behind it. */
const mostBytes = 2 ** 30;

/** The index of an access as one value plus a constant, if that sum does not wrap. */
export function splitIndex(mem: Addressed, index: KNode): SplitIndex {
  const bytes = bytesOf(mem.dtype);
  const fits = (by: number): boolean => Math.abs(by) * bytes < mostBytes;
  if (index.op === 'CONST' && fits(Number(index.arg.value))) return { root: null, offset: Number(index.arg.value) };
  if (index.op !== 'ADD' && index.op !== 'SUB') return { root: index, offset: 0 };
  const [x, y] = index.src;
  const constant = y.op === 'CONST' ? y : index.op === 'ADD' && x.op === 'CONST' ? x : null;
  if (constant === null) return { root: index, offset: 0 };
  const root = constant === y ? x : y;
  const by = Number(constant.arg.value) * (index.op === 'SUB' ? -1 : 1);
  const inside = lowOf(root) + by >= -largest && highOf(root) + by <= largest;
  // Addresses of group memory have 32 bits: none before its start is computed.
  const isBase = mem.op === 'PARAM' || lowOf(root) >= 0;
  return inside && isBase && fits(by) ? { root, offset: by } : { root: index, offset: 0 };
}

/** Where memory is declared: group memory of all kinds one behind the other, in the order of the program. */
export interface SharedLayout {
  readonly bytes: number;
  readonly offsets: ReadonlyMap<KNode, number>;
}

export function layShared(program: Program): SharedLayout {
  const offsets = new Map<KNode, number>();
  let bytes = 0;
  for (const n of program.body) {
    if (n.op !== 'SHARED') continue;
    offsets.set(n, bytes);
    bytes += Math.ceil((n.arg.length * bytesOf(n.dtype)) / 16) * 16;
  }
  return { bytes, offsets };
}

/** Name of the group memory of a kernel. */
export const sharedName = 'group_memory';

/** The addresses of a kernel. A register with one is known to the block it was computed in and to those inside. */
export class Addresses {
  readonly #w: Writer;
  readonly #shared: SharedLayout;
  readonly #operand: (n: KNode) => string;
  readonly #known = new Map<string, string>();
  readonly #numbers = new Map<KNode, number>();
  readonly #blocks: string[][] = [[]];

  constructor(w: Writer, shared: SharedLayout, operand: (n: KNode) => string) {
    this.#w = w;
    this.#shared = shared;
    this.#operand = operand;
  }

  open(): void {
    this.#blocks.push([]);
  }

  close(): void {
    for (const key of this.#blocks.pop() ?? []) this.#known.delete(key);
  }

  /** The address of an element, and of those so many bytes behind it. */
  at(mem: Addressed, index: KNode): (behind: number) => string {
    const bytes = bytesOf(mem.dtype);
    const { root, offset } = splitIndex(mem, index);
    const start = mem.op === 'SHARED' ? (this.#shared.offsets.get(mem) ?? 0) : 0;
    const [base, fixed] =
      root === null
        ? [mem.op === 'SHARED' ? sharedName : this.#base(mem), start]
        : [this.#element(mem, root, bytes), mem.op === 'SHARED' ? start : 0];
    return (behind) => {
      const by = fixed + offset * bytes + behind;
      return by === 0 ? `[${base}]` : `[${base}+${by}]`;
    };
  }

  /**
   * The address of an element of group memory that all threads of a warp give. It comes with what `spread` computes for each of them, once, under
   * `key`.
   */
  spread(mem: KNodeOf<'SHARED'>, index: KNode, key: string, spread: () => string): (behind: number) => string {
    const bytes = bytesOf(mem.dtype);
    const { root, offset } = splitIndex(mem, index);
    const w = this.#w;
    const fixed = (this.#shared.offsets.get(mem) ?? 0) + offset * bytes;
    const own = w.once(`spread ${key}`, () => w.op('r', 'add.s32', spread(), this.#sharedBase()));
    const register =
      root === null
        ? own
        : this.#once(`spread ${key} ${bytes} ${this.#numberOf(root)}`, () =>
            w.op('r', 'mad.lo.s32', this.#operand(root), `${bytes}`, own),
          );
    return (behind) => (fixed + behind === 0 ? `[${register}]` : `[${register}+${fixed + behind}]`);
  }

  /** A register known to the block it is computed in, and to those inside. */
  #once(key: string, compute: () => string): string {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const register = compute();
    this.#known.set(key, register);
    this.#blocks[this.#blocks.length - 1]?.push(key);
    return register;
  }

  #base(mem: KNodeOf<'PARAM'>): string {
    const { slot } = mem.arg;
    const w = this.#w;
    return w.once(`base ${slot}`, () => w.op('rd', 'cvta.to.global.u64', w.op('rd', 'ld.param.b64', `[p${slot}]`)));
  }

  /** In group memory one register serves all memories of the same element size: what differs is the offset. */
  #element(mem: Addressed, root: KNode, bytes: number): string {
    const where = mem.op === 'SHARED' ? 'shared' : mem.arg.slot;
    const w = this.#w;
    return this.#once(`${where} ${bytes} ${this.#numberOf(root)}`, () => {
      const index = this.#operand(root);
      return mem.op === 'PARAM'
        ? w.op('rd', 'mad.wide.s32', index, `${bytes}`, this.#base(mem))
        : w.op('r', 'mad.lo.s32', index, `${bytes}`, this.#sharedBase());
    });
  }

  #sharedBase(): string {
    const w = this.#w;
    return w.once('shared', () => w.op('r', 'mov.u32', sharedName));
  }

  #numberOf(n: KNode): number {
    const number = this.#numbers.get(n) ?? this.#numbers.size;
    this.#numbers.set(n, number);
    return number;
  }
}
