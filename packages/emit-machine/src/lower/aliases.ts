/**
 * Which reads of a program's registers need no copy: those whose register is not written again before the last use of the read. Where
 * they are, the value is used from the register itself.
 */
import { blocksOf, type findRareSides, type KNode, type KNodeOf, linearOf, type Program } from '@polygrad/core/kernel';

/** Finds reads of registers whose value does not change before its last use: those need no copy. */
export class Aliases {
  readonly #program: Program;
  readonly #ends: Int32Array;
  /** The position of the last use of each read. */
  readonly #last = new Map<KNode, number>();
  /** Positions of writes, by register and index. */
  readonly #stores = new Map<KNode, Map<number, number[]>>();

  constructor(program: Program, ends: Int32Array, rare: ReturnType<typeof findRareSides>) {
    this.#program = program;
    this.#ends = ends;
    const { body } = program;
    // A rarely computed node is computed at its WHERE.
    const later = new Map<KNode, number>();
    for (let at = body.length - 1; at >= 0; at--) {
      const side = rare.sides.get(body[at]!);
      if (side === undefined) continue;
      const place = later.get(body[at]!) ?? at;
      for (const n of side.nodes) later.set(n, place);
    }
    for (let at = 0; at < body.length; at++) {
      const n = body[at]!;
      const place = later.size === 0 ? at : (later.get(n) ?? at);
      // As `operandsOf` says, without a list.
      const src: readonly KNode[] = n.src;
      let first = 0;
      if (n.op === 'LOAD' || n.op === 'STORE' || n.op === 'ATOMIC') {
        first = 2;
        if (n.src[0].op !== 'REG') for (const t of linearOf(n.src[1]).terms) this.#use(t, place);
      }
      for (let i = first; i < src.length; i++) if (src[i]!.op === 'LOAD') this.#use(src[i]!, place);
      if (n.op !== 'STORE' || n.src[0].op !== 'REG') continue;
      let all = this.#stores.get(n.src[0]);
      if (all === undefined) this.#stores.set(n.src[0], (all = new Map()));
      const index = n.src[1].op === 'CONST' ? Number(n.src[1].arg.value) : -1;
      const list = all.get(index);
      if (list === undefined) all.set(index, [at]);
      else list.push(at);
    }
  }

  /** A value that is used at a position. */
  #use(n: KNode, at: number): void {
    if (n.op === 'LOAD' && n.src[0].op === 'REG') this.#last.set(n, Math.max(at, this.#last.get(n) ?? 0));
  }

  /** True if the register read at a position of the body is not written before the last use. */
  stays(n: KNodeOf<'LOAD'>, at: number): boolean {
    const blocks = blocksOf(this.#program);
    let end = this.#last.get(n) ?? at;
    // Later iterations of an inner loop come back to its uses, so the whole loop counts.
    for (let open = blocks[end]!; open !== blocks[at]!; open = blocks[open]!) {
      if (open < 0) return false;
      end = this.#ends[open]!;
    }
    const index = n.src[1].op === 'CONST' ? Number(n.src[1].arg.value) : -1;
    const last = this.#last.get(n) ?? at;
    const stores = this.#stores.get(n.src[0])?.get(index) ?? [];
    return !stores.some((s) => s > at && (s < end || (s === end && s !== last)));
  }
}
