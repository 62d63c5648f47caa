/**
 * Formulas: elementwise functions that are recorded for many sets of tensors, by calling them once and then node by node, without what
 * operations do besides.
 *
 * Shapes and dtypes follow from those of the call, so nothing is checked again, and nothing that lies between gets a handle. The graph is the
 * one that calls would have recorded, so plans and results are the same.
 */
import { definitions } from '../graph/definition.ts';
import { type Attrs, type Node, nextMark, type PrimitiveName } from '../graph/node.ts';
import { recordKind } from '../graph/primitives.ts';
import { checkLimits } from '../graph/recorder.ts';
import { holdFlushes } from '../graph/scope.ts';
import { graph } from '../graph/state.ts';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { checkFunction } from '@polygrad/compiler/shape/options';
import { sameShape, type Shape } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from './handle.ts';
import type { Tensor } from './types.ts';

/** Tensors of one shape that a formula is recorded for. */
export type FormulaSet = readonly [Tensor, ...Tensor[]];

/** A node of a formula. */
interface Line {
  readonly kind: number;
  readonly op: PrimitiveName;
  readonly attr: Attrs[PrimitiveName];
  readonly dtype: DType;
  /** Places of its sources among the values: those that all sets share, those of a set, then those of lines. */
  readonly from: readonly number[];
  /** It depends on the set, so it has the set's shape; otherwise it is a number. */
  readonly own: boolean;
}

/** What a call has recorded for operands of these dtypes, and the places of its results. */
interface Lines {
  readonly dtypes: readonly DType[];
  readonly lines: readonly Line[];
  readonly results: readonly number[];
}

const number: Shape = [];

/**
 * The lines behind results, or null where a set of another shape may need others: all that is recorded since `begun` must be elementwise in
 * tensors of one shape, and numbers, and read nothing else but `operands`, of which `shared` ones come first.
 */
function linesOf(results: readonly Node[], operands: readonly Node[], shared: number, begun: number): Lines | null {
  const mark = nextMark();
  const { shape } = operands[shared]!;
  for (const [i, node] of operands.entries()) {
    // What has two places here may be two tensors in another set.
    if (node.mark === mark) return null;
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
  const isOwn = operands.map((_, i) => i >= shared);
  const lines: Line[] = [];
  for (const node of found) {
    const { kind, op, attr, dtype } = node;
    const from = node.src.map(({ index }) => index);
    const own = from.some((at) => isOwn[at]);
    const fits = definitions[kind]!.role === 'elementwise' || op === 'constant' || op === 'scalar';
    if (!fits || !sameShape(node.shape, own ? shape : number)) return null;
    node.index = isOwn.push(own) - 1;
    lines.push({ kind, op, attr, dtype, from, own });
  }
  return { dtypes: operands.map(({ dtype }) => dtype), lines, results: results.map(({ index }) => index) };
}

/** True where numbers stand in the places of those that all sets share, and tensors of one shape behind them. */
function isSet(operands: readonly Node[], shared: number): boolean {
  for (let i = 0; i < operands.length; i++)
    if (!sameShape(operands[i]!.shape, i < shared ? number : operands[shared]!.shape)) return false;
  return operands.length > shared;
}

function areTheirs({ dtypes }: Lines, operands: readonly Node[]): boolean {
  if (dtypes.length !== operands.length) return false;
  for (let i = 0; i < dtypes.length; i++) if (dtypes[i] !== operands[i]!.dtype) return false;
  return true;
}

/** Records lines for a set. */
function recorded({ lines, results }: Lines, operands: readonly Node[], shape: Shape): Tensor[] {
  const values = [...operands];
  for (let at = 0; at < lines.length; at++) {
    const { kind, op, from, attr, dtype, own } = lines[at]!;
    const src = new Array<Node>(from.length);
    for (let i = 0; i < src.length; i++) src[i] = values[from[i]!]!;
    values.push(recordKind(kind, op, src, attr, own ? shape : number, dtype));
  }
  return results.map((at) => wrap(values[at]!));
}

/**
 * An elementwise function of sets of tensors, such as a parameter, its gradient and its state. Recording it for a set takes a fraction of what
 * a call takes: it is called once, and what it recorded is recorded again for other sets.
 *
 * It is called for each set where it is not elementwise or reads other tensors, where tensors of a set differ in shape, and in `autocast`.
 *
 * @example
 * const formula = new Formula(([x]) => [x.mul(x).add(1)]);
 * formula.of([tensor([1, 2])]); // [[2, 5]]
 * formula.of([tensor([3])]); // [[10]]
 */
export class Formula {
  readonly #f: (set: FormulaSet, shared: readonly Tensor[]) => readonly Tensor[];
  /** By dtypes; those of which there are none are not looked for again. */
  readonly #known: Lines[] = [];
  #fails = false;

  /** @param f records the same operations with the same numbers at every call */
  constructor(f: (set: FormulaSet, shared: readonly Tensor[]) => readonly Tensor[]) {
    checkFunction('Formula', f);
    this.#f = f;
  }

  /**
   * The results for a set.
   *
   * @param set tensors of one shape
   * @param shared what it reads besides, the same for many sets: tensors of shape []
   */
  of(set: FormulaSet, shared: readonly Tensor[] = []): readonly Tensor[] {
    const operands: Node[] = [];
    for (let i = 0; i < shared.length; i++) operands.push(nodeOf(shared[i]!, 'Formula'));
    for (let i = 0; i < set.length; i++) operands.push(nodeOf(set[i]!, 'Formula'));
    if (this.#fails || graph.casting !== null || !isSet(operands, shared.length)) return this.#f(set, shared);
    const { shape } = operands[shared.length]!;
    const known = this.#known.find((lines) => areTheirs(lines, operands));
    if (known !== undefined) {
      const results = holdFlushes(() => recorded(known, operands, shape));
      if (graph.holding === 0) checkLimits();
      return results;
    }
    const { newest: begun, epoch } = graph;
    const results = this.#f(set, shared);
    const nodes = results.map(({ node }) => node);
    const lines = linesOf(nodes, operands, shared.length, begun);
    if (lines !== null) this.#known.push(lines);
    else if (graph.epoch === epoch) this.#fails = true;
    return results;
  }
}
