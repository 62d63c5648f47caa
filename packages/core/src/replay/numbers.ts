/**
 * Where the numbers of an observed call come from: those of its kernels from the plans that ran, and its random keys from
 * the generator.
 */
import type { CompiledKernel } from '../engine/engine.ts';
import type { Attrs, Node } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import type { Plan } from '../planner/plan.ts';
import { generatedKey } from '../tensor/random-key.ts';
import type { Live, Scalar } from './script.ts';

/** Origin of a random key: a call of the generator, counted from the beginning, and how it was split since. */
export interface Draw {
  readonly call: number;
  readonly path: readonly number[];
}

export class Draws {
  /** Calls of the generator whose bits are computed from numbers of the observed call. */
  readonly bound: Set<number> = new Set();
  readonly #before: number;
  readonly #parts = new Map<readonly number[], Draw>();

  /** @param before calls of the generator before the observed call */
  constructor(before: number) {
    this.#before = before;
  }

  /** Calls of the generator since then; negative if it was seeded again. */
  get count(): number {
    return graph.calls - this.#before;
  }

  /** Null for a key that is not the generator's. */
  of(key: readonly number[]): Draw | null {
    const known = this.#parts.get(key);
    if (known !== undefined) return known;
    for (let call = 0; call < this.count; call++) {
      const [high, low] = generatedKey(this.#before + call);
      if (high === key[0] && low === key[1]) return { call, path: [] };
    }
    return null;
  }

  split(key: readonly number[], parts: readonly (readonly number[])[]): void {
    const draw = this.of(key);
    if (draw === null) return;
    for (const [i, part] of parts.entries()) this.#parts.set(part, { call: draw.call, path: [...draw.path, i] });
  }
}

/** A plan that ran, and which of its dispatches comes next. */
interface Planned {
  readonly plan: Plan;
  readonly scalars: readonly (readonly Scalar[])[];
  next: number;
}

export class Numbers {
  /** Numbers that are read at every call. */
  readonly live: Live[] = [];
  readonly #liveOf = new Map<Node, number>();
  readonly #planned: Planned[] = [];

  add(node: Node, live: Live): void {
    this.#liveOf.set(node, this.live.push(live) - 1);
  }

  /** The number of a `scalar` node. */
  of(node: Node): Scalar {
    const live = this.#liveOf.get(node);
    return live === undefined ? (node.attr as Attrs['scalar']).value : { live };
  }

  planned(plan: Plan, nodes: readonly (Node | undefined)[]): void {
    const scalars = plan.dispatches.map((dispatch) =>
      dispatch.scalars.map((local) => (local < 0 ? plan.sizes[-1 - local]! : this.of(nodes[local]!))),
    );
    this.#planned.push({ plan, scalars, next: 0 });
  }

  /** The numbers of a kernel's next dispatch, according to its plan. With loops, plans alternate. Null if no plan expects it next. */
  ofDispatch(kernel: CompiledKernel): readonly Scalar[] | null {
    for (let i = this.#planned.length - 1; i >= 0; i--) {
      const planned = this.#planned[i]!;
      const { dispatches } = planned.plan;
      if (dispatches[planned.next]?.kernel !== kernel) continue;
      const found = planned.scalars[planned.next]!;
      planned.next = (planned.next + 1) % dispatches.length;
      return found;
    }
    return null;
  }
}
