/** Whom the runtime asks where work goes, if anybody: a type alone. placement/ has the one there is. */
import type { IEngine } from '../engine/engine.ts';
import type { Node } from '../graph/node.ts';
import type { Cone } from '../planner/capture/cone.ts';
import type { Plan } from '../planner/plan.ts';
import type { EngineState } from './per-engine.ts';

/**
 * Says which engine computes what where that is not simply the current one (placement/). Nodes of an `order` stand behind their sources, and
 * have their places in it as `index`.
 */
export interface Placer {
  /** What `stays` of a plan is where nobody need be asked: what it computes, if nobody is told of it, is for this engine. */
  readonly stays: object;
  /** True if all that the cone holds is to be computed on this engine; multi-engine.ts cuts it else. The plan is undefined where it is to be made. */
  isHere(state: EngineState, cone: Cone, wanted: readonly Node[], told: boolean, plan: Plan | undefined): boolean;
  /** False if no flush was all of another engine yet. */
  readonly isAway: boolean;
  /** The other engine that has computed all of such a flush before, and is asked first; null: the current one is. */
  likely(wanted: readonly Node[]): EngineState | null;
  /** All of a flush was computed on another engine; null: not on the one that was likely. */
  learn(wanted: readonly Node[], state: EngineState | null): void;
  /** Engines beside the current one, on which all of a flush may be at home. */
  others(): readonly EngineState[];
  /** The engine of each node that is not in memory. */
  assign(
    order: readonly Node[],
    wanted: readonly Node[],
    current: EngineState,
    told: boolean,
  ): readonly (EngineState | null)[];
  /** True for a node that the engine is known to refuse. */
  refuses(state: EngineState, node: Node): boolean;
  /** Nodes go to the CPU engine for a reason, in words, for which an engine cannot compute them. Throws where that is to be an error. */
  fallBack(state: EngineState, reason: string, nodes: readonly Node[], error?: Error): void;
  /** True if the CPU engine is to try what failed so. */
  takes(error: unknown, state: EngineState): boolean;
  /** The engine that will compute a node; null: nobody knows yet. */
  engineOf(node: Node): IEngine | null;
}
