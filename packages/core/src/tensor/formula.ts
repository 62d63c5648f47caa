/**
 * One formula for many sets of tensors: recorded once by calling it, and for the other sets node by node, without what operations do besides.
 *
 * Shapes and dtypes follow from the first set, so nothing is checked again, and nothing that lies between gets a handle. The graph is the one
 * that calls would have recorded, so plans and results are the same.
 */
import { definitions } from '../graph/definition.ts';
import { type Node, nextMark, type PrimitiveName } from '../graph/node.ts';
import { record } from '../graph/primitives.ts';
import { checkLimits } from '../graph/recorder.ts';
import { holdFlushes } from '../graph/scope.ts';
import { graph } from '../graph/state.ts';
import { sameShape } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from './handle.ts';
import type { Tensor } from './types.ts';

/** A node of a formula. */
interface Line {
  readonly node: Node;
  /** Places of its sources among the values: those that all sets share, those of a set, then those of lines. */
  readonly from: readonly number[];
  /** It depends on the set, so it has the set's shape; otherwise it is a number. */
  readonly own: boolean;
}

/** What a call of a formula has recorded, and the places of its results. */
interface Lines {
  readonly lines: readonly Line[];
  readonly results: readonly number[];
}

/**
 * The lines behind results, or null where a set of another shape may need others: all that is recorded since `begun` must be elementwise in
 * tensors of one shape, and numbers, and nothing else may be read but `known` nodes, of which `shared` ones come first.
 */
function linesOf(results: readonly Node[], known: readonly Node[], shared: number, begun: number): Lines | null {
  const mark = nextMark();
  const { shape } = known[shared]!;
  for (const [i, node] of known.entries()) {
    // What has two places here may be two tensors in another set.
    if (node.mark === mark || !sameShape(node.shape, i < shared ? [] : shape)) return null;
    node.mark = mark;
    node.index = i;
  }
  const found: Node[] = [];
  const add = (node: Node): void => {
    if (node.mark === mark) return;
    node.mark = mark;
    found.push(node);
  };
  for (const node of results) add(node);
  // It grows on the way.
  for (const { id, storage, src } of found) {
    if (id <= begun || storage !== null) return null;
    for (const source of src) add(source);
  }
  found.sort((a, b) => a.id - b.id);
  const own = known.map((_, i) => i >= shared);
  const lines: Line[] = [];
  for (const node of found) {
    const from = node.src.map(({ index }) => index);
    const isOwn = from.some((at) => own[at]);
    const { op } = node;
    // Which numbers a function of `compile` has, it has to be told.
    const fits =
      definitions[node.kind]!.role === 'elementwise' ||
      op === 'constant' ||
      (op === 'scalar' && graph.observer === undefined);
    if (!fits || !sameShape(node.shape, isOwn ? shape : [])) return null;
    node.index = own.push(isOwn) - 1;
    lines.push({ node, from, own: isOwn });
  }
  return { lines, results: results.map(({ index }) => index) };
}

/** True for what may stand in the place of a node of the first set, in a set whose shapes are that of `head`. */
function fitsBeside(node: Node, first: Node, head: Node): boolean {
  return node.dtype === first.dtype && sameShape(node.shape, head.shape);
}

/** Records lines for another set. */
function recorded({ lines, results }: Lines, known: readonly Node[], shared: number): Tensor[] {
  const values = [...known];
  const { shape } = known[shared]!;
  for (const { node, from, own } of lines) {
    const src = new Array<Node>(from.length);
    for (let i = 0; i < src.length; i++) src[i] = values[from[i]!]!;
    const { op, attr, dtype } = node;
    values.push(record<PrimitiveName>(op, src, attr, own ? shape : node.shape, dtype));
  }
  return results.map((at) => wrap(values[at]!));
}

/**
 * Results of an elementwise formula for many sets of tensors, such as a parameter, its gradient and its state. Recording them takes a
 * fraction of what as many calls take: the formula is called for the first set, and what it recorded is recorded again for the others.
 *
 * It is called for each set where it is not elementwise, where tensors of a set differ in shape, or where sets differ in dtypes.
 *
 * @param formula records the same operations for every set; it may depend on nothing else that differs between sets
 * @param sets lists of equal length; tensors of a set have one shape
 * @param shared tensors that the formula reads besides, the same for all sets: numbers, of shape []
 * @returns the results of each set
 *
 * @example
 * const rate = tensor(0.5);
 * const sets = [
 *   [tensor([1, 2]), tensor([2, 2])],
 *   [tensor([3]), tensor([4])],
 * ];
 * const moved = mapFormula(([p, g]) => [p!.sub(g!.mul(rate))], sets, [rate]);
 * moved; // [[[0, 1]], [[1]]]
 */
export function mapFormula(
  formula: (set: readonly Tensor[]) => readonly Tensor[],
  sets: readonly (readonly Tensor[])[],
  shared: readonly Tensor[] = [],
): (readonly Tensor[])[] {
  const common = shared.map((t) => nodeOf(t, 'mapFormula'));
  let first: readonly Node[] = [];
  let lines: Lines | null = null;
  return sets.map((set, at) => {
    const own = set.map((t) => nodeOf(t, 'mapFormula'));
    if (lines !== null && own.length === first.length && own.every((node, i) => fitsBeside(node, first[i]!, own[0]!))) {
      const found = lines;
      const made = holdFlushes(() => recorded(found, [...common, ...own], common.length));
      if (graph.holding === 0) checkLimits();
      return made;
    }
    const begun = graph.newest;
    const results = formula(set);
    if (at === 0 && sets.length > 1 && own.length > 0) {
      first = own;
      const made = results.map(({ node }) => node);
      lines = linesOf(made, [...common, ...own], common.length, begun);
    }
    return results;
  });
}
