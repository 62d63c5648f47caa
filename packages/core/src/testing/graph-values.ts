/**
 * Values of graph nodes by definition: every primitive as a loop over its result, in float64, on host arrays.
 *
 * Shares nothing with lowering or kernels; tests compare the two. Integers wrap as their dtype does; floats are not rounded
 * between operations. Slow by design. Leaves are given by `leaves`.
 */
import type { Attrs, PrimitiveName } from '../graph/attrs.ts';
import type { Node } from '../graph/node.ts';
import { dtypeInfo } from '../shape/dtype.ts';
import { build, type Rule, spread, type Tensor, type Values } from './graph-values-arrays.ts';
import { elementwise } from './graph-values-elementwise.ts';
import { structured } from './graph-values-rules.ts';

export type { Values } from './graph-values-arrays.ts';

function each(fn: (...xs: number[]) => number): Rule<PrimitiveName> {
  return (src, _, shape) => build(shape, (index) => fn(...src.map((t) => spread(t, index))));
}

function wrapped(node: Node, values: Values): Values {
  const { kind, bytes } = dtypeInfo[node.dtype];
  if (kind === 'float') return values;
  if (kind === 'bool') return values.map((v) => Number(v !== 0));
  const modulus = 2 ** (8 * bytes);
  const low = kind === 'int' ? -modulus / 2 : 0;
  return values.map((v) => {
    const rest = (((v - low) % modulus) + modulus) % modulus;
    return rest + low;
  });
}

/**
 * Values of nodes by definition. Random bits are not covered.
 *
 * @param wanted the nodes
 * @param leaves values of 'buffer' nodes
 */
export function valuesOf(wanted: readonly Node[], leaves: ReadonlyMap<Node, Values>): Values[] {
  const known = new Map<Node, Values>(leaves);
  const stack = [...wanted];
  while (stack.length > 0) {
    const node = stack[stack.length - 1]!;
    if (!known.has(node) && node.storage !== null) known.set(node, viewed(node, leaves));
    const missing = known.has(node) ? [] : node.src.filter((s) => !known.has(s));
    if (!known.has(node) && missing.length > 0) {
      stack.push(...missing);
      continue;
    }
    stack.pop();
    if (!known.has(node)) known.set(node, wrapped(node, compute(node, known)));
  }
  return wanted.map((node) => known.get(node)!);
}

/** A realised view of a leaf's memory. */
function viewed(node: Node, leaves: ReadonlyMap<Node, Values>): Values {
  const { buffer, view } = node.storage!;
  for (const [leaf, values] of leaves) {
    if (leaf.storage?.buffer !== buffer) continue;
    return build(node.shape, (index) => {
      return values[index.reduce((sum, i, axis) => sum + i * view.strides[axis]!, view.offset)]!;
    });
  }
  throw new Error(`[valuesOf] node ${node.id} ${node.op} is in memory and no view of a leaf given`);
}

function compute(node: Node, known: ReadonlyMap<Node, Values>): Values {
  const src = node.src.map((s): Tensor => ({ shape: s.shape, values: known.get(s)! }));
  if (node.op === 'scalar') return Float64Array.of(Number((node.attr as Attrs['scalar']).value));
  if (node.op === 'cast') {
    const { kind } = dtypeInfo[node.dtype];
    const x = src[0]!.values;
    return kind === 'float' ? x : kind === 'bool' ? x.map((v) => Number(v !== 0)) : x.map(Math.trunc);
  }
  if (node.op === 'not' && node.dtype === 'bool') return src[0]!.values.map((v) => Number(v === 0));
  const rule = structured[node.op] as Rule<PrimitiveName> | undefined;
  if (rule !== undefined) return rule(src, node.attr as never, node.shape);
  const fn = elementwise[node.op];
  if (fn === undefined) throw new Error(`[valuesOf] primitive ${node.op} has no definition here`);
  return each(fn)(src, node.attr as never, node.shape);
}
