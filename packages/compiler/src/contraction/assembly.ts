/**
 * Collects the dispatches of one lowered kernel and the temporaries between them.
 *
 * Expressions name temporaries as PARAMs whose slots follow those of the kernel; each dispatch then gets its own slots
 * for what it binds.
 */
import { type Inside, linearize } from '../codegen/linearize/linearize.ts';
import { optimize } from '../codegen/loops/optimize.ts';
import type { CodegenCaps, Lowered, LoweredDispatch } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Count, KNode, KNodeOf, LoopKernel, LoopStore, Product, Transform } from '../ir/ir.ts';
import { Rewriter } from '../ir/rewrite.ts';
import { nodesOf } from '../ir/node.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';

/** A temporary tensor: one PARAM to write it, one to read it. */
export interface Temporary {
  readonly write: KNode;
  readonly read: KNode;
}

export class Assembly {
  readonly #kernel: LoopKernel;
  readonly #e: Exprs;
  readonly #caps: CodegenCaps;
  readonly #temps: number[] = [];
  readonly #dispatches: LoweredDispatch[] = [];

  constructor(kernel: LoopKernel, e: Exprs, caps: CodegenCaps) {
    this.#kernel = kernel;
    this.#e = e;
    this.#caps = caps;
  }

  /** Memory for `length` elements that lives until the last dispatch. */
  temporary(dtype: DType, length: number): Temporary {
    const slot = this.#kernel.params.length + this.#temps.length;
    this.#temps.push(length * (this.#caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes));
    return { write: this.#e.param(slot, dtype, 'write', length), read: this.#e.param(slot, dtype, 'read', length) };
  }

  /**
   * Adds a dispatch.
   *
   * @param shaped the transforms that chose the kinds of all ranges; null: the default choices are made
   * @param product the library product that it computes, given the program's slot of each PARAM
   * @param inside code in place of the loops, with the same PARAMs as the stores
   */
  add(
    suffix: string,
    stores: readonly LoopStore[],
    shaped: readonly Transform[] | null,
    product?: (slotOf: (slot: number) => number) => Product<Count>,
    inside?: Inside,
  ): void {
    const used = paramsOf(stores);
    const rewriter = new Rewriter(this.#e, new Map());
    const params = used.map((p, slot) => {
      const own = this.#e.param(slot, p.dtype, p.arg.access, p.arg.length, p.arg.fewer);
      rewriter.set(p, own);
      return own;
    });
    const kernel: LoopKernel = {
      name: this.#kernel.name + suffix,
      params,
      scalars: this.#kernel.scalars,
      stores: stores.map((s) => rewriter.store(s)),
    };
    const linear = linearize(
      shaped === null ? optimize(kernel, this.#caps) : { ...kernel, transforms: shaped },
      this.#caps,
      inside && { ...inside, values: inside.values.map((v) => rewriter.node(v)) },
    );
    const slotOf = (slot: number): number => used.findIndex(({ arg }) => arg.slot === slot);
    const program = product === undefined ? linear : { ...linear, product: product(slotOf) };
    const first = this.#kernel.params.length;
    const bindings = used.map(({ arg }) => (arg.slot < first ? { param: arg.slot } : { temp: arg.slot - first }));
    this.#dispatches.push({ program, bindings });
  }

  result(): Lowered {
    return { dispatches: this.#dispatches, temps: this.#temps };
  }
}

/** The PARAMs that stores use, by slot. */
function paramsOf(stores: readonly LoopStore[]): KNodeOf<'PARAM'>[] {
  const bySlot = new Map<number, KNodeOf<'PARAM'>>();
  for (const n of nodesOf(stores.map((s) => s.store))) if (n.op === 'PARAM') bySlot.set(n.arg.slot, n);
  return [...bySlot.values()].sort((x, y) => x.arg.slot - y.arg.slot);
}
