/**
 * Kernels of users (`custom/`), as two primitives. What they compute, their gradients and their batches come with the attributes.
 *
 * In plan keys `key` stands for all of that. It is a hash of what the kernel computes, not of its identity, so it means the same in every process.
 */
import { type BatchRule, define, type Definition, type GradientRule } from '../graph/definition.ts';
import { opName } from '../graph/scope.ts';
import type { Exprs } from '@polygrad/compiler/ir/expr';
import type { KNode } from '@polygrad/compiler/ir/ir';
import type { IntWriter } from '../planner/capture/cache.ts';
import { part, type ProgramRule, programsOf } from '../planner/lowering/rules.ts';
import type { TensorView } from '@polygrad/compiler/programs/program-set';
import type { SlotView } from '@polygrad/compiler/programs/scan/scan';
import type { DType } from '@polygrad/compiler/shape/dtype';
import type { Shape } from '@polygrad/compiler/shape/view';
import { broadcastShapes } from '@polygrad/compiler/shape/broadcast';

/** An elementwise kernel. Its sources broadcast. */
export interface CustomMap {
  /** Words of a hash of what it computes. */
  readonly key: readonly number[];
  readonly dtype: DType;
  readonly value: (e: Exprs, parts: readonly KNode[]) => KNode;
  readonly gradient: GradientRule<'customMap'>;
}

/** A kernel with a program of its own. */
export interface CustomProgram {
  /** Words of a hash of what it computes. */
  readonly key: readonly number[];
  readonly dtype: DType;
  readonly shape: Shape;
  readonly lower: (
    out: TensorView,
    inputs: readonly SlotView[],
    caps: Parameters<ProgramRule>[1],
  ) => ReturnType<ProgramRule>;
  readonly gradient: GradientRule<'customProgram'>;
  readonly batch: BatchRule<'customProgram'>;
}

declare module '../graph/node.ts' {
  interface Attrs {
    customMap: CustomMap;
    customProgram: CustomProgram;
  }
}

function encode({ key }: CustomMap | CustomProgram, out: IntWriter): void {
  out.reserve(key.length + 1);
  out.list(key);
}

export const customMapPrimitive: Definition<'customMap'> = /* @__PURE__ */ define('customMap', {
  infer: {
    shape: (src, _, op) => src.reduce<Shape>((shape, s) => broadcastShapes(opName(op), shape, s.shape), []),
    dtype: (_, { dtype }) => dtype,
  },
  role: 'elementwise',
  work: 8,
  encode,
  gradient: (c) => c.attr.gradient(c),
  // Undefined: the user's gradient function is transposed. All that is known of it is that it is linear.
  tangent: () => undefined,
  value: ({ e }, demand, node) =>
    node.attr.value(
      e,
      node.src.map((_, i) => part(demand, i)),
    ),
});

export const customProgramPrimitive: Definition<'customProgram'> = /* @__PURE__ */ define('customProgram', {
  infer: { shape: (_, { shape }) => shape, dtype: (_, { dtype }) => dtype },
  role: 'program',
  work: 64,
  encode,
  gradient: (c) => c.attr.gradient(c),
  tangent: () => undefined,
  batch: (c) => c.attr.batch(c),
  programs: (node) =>
    programsOf(node, ({ out, slot }, caps) =>
      node.attr.lower(
        out,
        node.src.map((_, i) => slot(i)),
        caps,
      ),
    ),
});
