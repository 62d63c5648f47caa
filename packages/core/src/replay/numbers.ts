/**
 * Where the numbers of a call come from, while it is observed: those of its kernels, by the plans that ran, and the random keys that it draws, by
 * the words that the generator gives.
 */
import type { CompiledKernel } from '../engine/engine.ts';
import type { Attrs, Node } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import type { Plan } from '../planner/plan.ts';
import { generatedKey } from '../tensor/random-key.ts';
import type { Live, Scalar } from './script.ts';

/** Where a random key comes from: a call of the generator, counted from the beginning, and the parts it was split into since. */
export interface Draw {
  readonly call: number;
  readonly path: readonly number[];
}

export class Draws {
  /** Calls of the generator whose bits are computed from numbers of the call that is observed. */
  readonly bound: Set<number> = new Set();
  readonly #before: number;
  readonly #parts = new Map<readonly number[], Draw>();

  /** @param before how many calls of the generator there were until now */
  constructor(before: number) {
    this.#before = before;
  }

  /** Calls of the generator since then; negative where it began anew. */
  get count(): number {
    return graph.calls - this.#before;
  }

  /** Null for a key that the generator has not given. */
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
  /** Numbers that every call asks for anew. */
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

  /** The numbers of the next dispatch of a kernel: its plan knows. Plans take turns where there are loops. Null where no plan has it next. */
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
