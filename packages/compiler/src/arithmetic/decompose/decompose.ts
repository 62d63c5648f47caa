/**
 * Rewrites value operations that an engine lacks into ones it has.
 *
 * It works on expression DAGs of either stage, before vectors are formed. So each function is written once for all dtypes, lanes and
 * engines. float32 functions use float32 and int32 arithmetic wherever that is accurate to one unit in the last place, so that they fill
 * vectors. The functions sin, cos, tan, pow and fmod use float64 for the hard part where the engine has it.
 */
import { told } from '#shown-as';
import { fault } from '../../shape/errors.ts';
import { type DType, isFloat } from '../../shape/dtype.ts';
import { abs, nanTest } from './basic.ts';
import { exp, log } from './exponential.ts';
import type { Exprs } from '../../ir/expr.ts';
import { registered, type FloatFunctions } from './functions.ts';
import { type DecomposeCaps, Math32, Math64 } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';
import { BASE_OPS, type ValueOp } from '../../ir/operations.ts';
import { remake } from '../../ir/rewrite.ts';
import { nodesOf, sourcesFirst } from '../../ir/node.ts';

/** Functions that nearly every program has. */
const usual: FloatFunctions = {
  EXP: exp,
  LOG: log,
  RSQRT: (m, x) => m.div(1, m.sqrt(x)),
  RECIP: (m, x) => m.div(1, x),
};

/**
 * Expressions equal to `roots` that use only BASE_OPS and the engine's native operations.
 *
 * @param roots expressions of one kernel
 * @param e factory for the new nodes
 * @param known replacements of expressions of this kernel that were decomposed before; new ones are added
 */
export function decompose(
  roots: readonly KNode[],
  e: Exprs,
  caps: DecomposeCaps,
  known?: Map<KNode, KNode>,
): readonly KNode[] {
  if (known === undefined && caps.keepRounding === undefined && ![...nodesOf(roots)].some((n) => isMissing(n, caps)))
    return roots;
  const done = known ?? new Map<KNode, KNode>();
  const finish = (root: KNode): void =>
    sourcesFirst(
      root,
      (n) => done.has(n),
      (n) => n.src,
      (n) => {
        const src = n.src.map((s) => done.get(s)!);
        const same = src.every((s, i) => s === n.src[i]) ? n : remake(e, n, src);
        const simpler = replacement(e, same, caps);
        // The replacement may itself contain operations to decompose.
        if (simpler !== null) finish(simpler);
        const kept = caps.keepRounding?.(e, same) ?? same;
        done.set(n, simpler === null ? kept : done.get(simpler)!);
      },
    );
  for (const root of roots) finish(root);
  const made = roots.map((r) => done.get(r)!);
  // Expressions computed from it later use it unchanged.
  if (known !== undefined) for (const n of nodesOf(made, (n) => (known.get(n) === n ? [] : n.src))) known.set(n, n);
  return made;
}

/** True if the engine lacks the operation. */
function isMissing(n: KNode, caps: DecomposeCaps): boolean {
  return !BASE_OPS.has(n.op) && !caps.nativeOps.has(n.op);
}

/** The replacement of a node, or null if the engine has its operation. */
function replacement(e: Exprs, n: KNode, caps: DecomposeCaps): KNode | null {
  if (!isMissing(n, caps)) return null;
  const [a, b, c] = n.src;
  switch (n.op as ValueOp | 'CAST') {
    case 'ABS':
      return abs(e, a);
    case 'ISNAN':
      return nanTest(e, a);
    case 'ROUNDED':
      return a;
    case 'MULADD':
      return e.add(e.mul(a, b), c);
    case 'CAST':
      // A cast of a float to bool is a comparison, if comparisons see denormal numbers.
      return n.dtype === 'bool' && !caps.flushesDenormals ? e.ne(a, 0) : null;
    default:
      return broughtFunction(e, n, caps);
  }
}

/** Float types without functions of their own go through float32. Integers have only MULHI. */
function broughtFunction(e: Exprs, n: KNode, caps: DecomposeCaps): KNode | null {
  const made = registered[n.op as ValueOp] ?? usual[n.op as ValueOp];
  if (made === undefined) return null;
  const dtype = n.dtype as DType;
  const integers = n.op === 'MULHI';
  if (isFloat(dtype) === integers) throw fault('kernel.decompose', told && `${n.op} is no operation on ${dtype}`);
  const m = dtype === 'float64' ? new Math64(e, caps) : new Math32(e, caps);
  const [a, b, c] = n.src.map((x) => e.cast(x, integers ? dtype : m.t)) as [KNode, KNode, KNode];
  return e.cast(made(m, a, b, c), dtype);
}
