/**
 * autocast: a function whose products run in 16 bits, and all that needs more digits in float32.
 *
 * Operands are cast where operations read them (`nodeOf`), by the name of the operation in progress. What the operation made itself is newer
 * than its begin and left alone, so composites compute inside as they always do. Nothing is cached: equal casts are merged by the planner.
 */
import type { Node } from '../graph/node.ts';
import { cast } from '../graph/primitives.ts';
import { opName, withCasting } from '../graph/scope.ts';
import { type Casting, graph } from '../graph/state.ts';
import { UnsupportedError } from '../engine/errors.ts';
import { getEngine } from '../engine/registry.ts';
import { type DType, isFloat, type SmallFloat } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFunction, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { called } from '../tensor/scope.ts';
import { castPolicies } from './policy.ts';

function castingTo(dtype: SmallFloat): Casting {
  const target: Readonly<Record<'narrow' | 'float32', DType>> = { narrow: dtype, float32: 'float32' };
  return (node: Node) => {
    // float64 is asked for by name, and integers are no numbers to round.
    if (!isFloat(node.dtype) || node.dtype === 'float64' || node.id > graph.begun) return node;
    const policy = castPolicies.get(opName(''));
    return policy === undefined ? node : cast(node, target[policy]);
  };
}

/** One each, so that compiled functions know them again. */
const castings: Readonly<Record<SmallFloat, Casting>> = {
  float16: /* @__PURE__ */ castingTo('float16'),
  bfloat16: /* @__PURE__ */ castingTo('bfloat16'),
};

/** Throws ArgumentError unless it is a 16-bit float, UnsupportedError where the current engine has no place for such. */
export function checkSmallFloat(op: string, dtype: SmallFloat): void {
  if (dtype !== 'float16' && dtype !== 'bfloat16')
    throw new ArgumentError(op, say`bad dtype: ${shown(dtype)}; must be 'float16' or 'bfloat16'`);
  const { name, caps } = getEngine();
  if (caps.dtypes.has(dtype)) return;
  const other = dtype === 'float16' ? 'bfloat16' : 'float16';
  const remedy = caps.dtypes.has(other) ? `use '${other}'` : `stay in float32, for which autocast(false, ...) stands`;
  throw new UnsupportedError(op, `engine '${name}' holds no ${dtype}, only ${[...caps.dtypes].join(', ')}; ${remedy}`);
}

/**
 * Runs a function in mixed precision: operations that multiply matrices or convolve take their floating-point operands as `dtype` and add in float32;
 * reductions, norms, softmax, losses, powers, exponentials and logarithms take them as float32; others take them as they come and meet in the wider dtype.
 * The table: docs/mixed-precision.md. float64 and integers are left alone. Source: Micikevicius et al., "Mixed precision training" (2018); PyTorch `autocast`.
 *
 * Gradients are computed in the dtypes of the values they belong to. Calls nest; the innermost counts.
 *
 * @param dtype 'float16', 'bfloat16', or false: no casts inside
 * @param body a synchronous function
 * @returns what the function returns
 * @throws ArgumentError for other dtypes, and where the function returns a promise; UnsupportedError where the current engine does not hold the dtype
 *
 * @example
 * const a = ones([2, 2]);
 * const [product, total] = autocast('bfloat16', () => [a.matmul(a), a.sum()]);
 * product.dtype; // 'bfloat16'
 * total.dtype; // 'float32'
 */
export function autocast<T>(dtype: SmallFloat | false, body: () => T): T {
  if (dtype !== false) checkSmallFloat('autocast', dtype);
  checkFunction('autocast', body);
  return withCasting(dtype === false ? null : castings[dtype], () => called('autocast', body));
}
