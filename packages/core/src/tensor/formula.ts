/**
 * Formulas: elementwise functions for many sets of tensors, such as an optimizer's update of each parameter. The function is called for one set. For
 * others, what it recorded is recorded again node by node.
 *
 * That skips the checks, handles and scopes of operations: shapes and dtypes follow from those of the call. The graph is the one that calls
 * would have recorded, so plans and results are the same.
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
  /** Its sources, as positions among all values: the shared operands, those of the set, then the lines in order. */
  readonly from: readonly number[];
  /** True if it depends on the set, so it has the set's shape; otherwise it has shape []. */
  readonly perSet: boolean;
}

/** What a call has recorded for operands of these dtypes, and the positions of its results. */
interface Lines {
  readonly dtypes: readonly DType[];
  readonly lines: readonly Line[];
  readonly results: readonly number[];
}

const number: Shape = [];

/**
 * The lines behind results, or null where a set of another shape may need other lines. Then something recorded since `begun` is not elementwise, has
 * another shape, or reads a tensor that is not among `operands`. The first `shared` of these are shared by all sets.
 */
function linesOf(results: readonly Node[], operands: readonly Node[], shared: number, begun: number): Lines | null {
  const mark = nextMark();
  const { shape } = operands[shared]!;
  for (const [i, node] of operands.entries()) {
    // A tensor that occurs twice here may be two tensors in another set.
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
  // The loop also visits what `add` appends.
  for (const { id, storage, src } of found) {
    if (id <= begun || storage !== null) return null;
    for (const source of src) add(source);
  }
  found.sort((a, b) => a.id - b.id);
  const isPerSet = operands.map((_, i) => i >= shared);
  const lines: Line[] = [];
  for (const node of found) {
    const { kind, op, attr, dtype } = node;
    const from = node.src.map(({ index }) => index);
    const perSet = from.some((at) => isPerSet[at]);
    const fits = definitions[kind]!.role === 'elementwise' || op === 'constant' || op === 'scalar';
    if (!fits || !sameShape(node.shape, perSet ? shape : number)) return null;
    node.index = isPerSet.push(perSet) - 1;
    lines.push({ kind, op, attr, dtype, from, perSet });
  }
  return { dtypes: operands.map(({ dtype }) => dtype), lines, results: results.map(({ index }) => index) };
}

/** True if the shared operands have shape [], and those of the set one shape. */
function isSet(operands: readonly Node[], shared: number): boolean {
  for (let i = 0; i < shared; i++) if (operands[i]!.shape.length !== 0) return false;
  if (operands.length <= shared) return false;
  const { shape: first } = operands[shared]!;
  for (let i = shared + 1; i < operands.length; i++) {
    const { shape } = operands[i]!;
    if (shape !== first && !sameShape(shape, first)) return false;
  }
  return true;
}

function haveDtypes({ dtypes }: Lines, operands: readonly Node[]): boolean {
  if (dtypes.length !== operands.length) return false;
  for (let i = 0; i < dtypes.length; i++) if (dtypes[i] !== operands[i]!.dtype) return false;
  return true;
}

/** Records lines for a set. */
function recorded({ lines, results }: Lines, operands: readonly Node[], shape: Shape): Tensor[] {
  const values = [...operands];
  for (let at = 0; at < lines.length; at++) {
    const { kind, op, from, attr, dtype, perSet } = lines[at]!;
    const src = new Array<Node>(from.length);
    for (let i = 0; i < src.length; i++) src[i] = values[from[i]!]!;
    values.push(recordKind(kind, op, src, attr, perSet ? shape : number, dtype));
  }
  return results.map((at) => wrap(values[at]!));
}

/**
 * An elementwise function of sets of tensors, such as a parameter, its gradient and its state. It is called once; for other sets, what it recorded
 * is recorded again, which takes a fraction of the time of a call.
 *
 * It is called for every set if it is not elementwise or reads other tensors. So it is where tensors of a set differ in shape, and in `autocast`.
 *
 * @example
 * const formula = new Formula(([x]) => [x.mul(x).add(1)]);
 * formula.of([tensor([1, 2])]); // [[2, 5]]
 * formula.of([tensor([3])]); // [[10]]
 */
export class Formula {
  readonly #f: (set: FormulaSet, shared: readonly Tensor[]) => readonly Tensor[];
  /** What calls recorded, one entry per combination of dtypes. */
  readonly #known: Lines[] = [];
  /** True once a call recorded what cannot be recorded again for other sets. */
  #fails = false;

  /**
   * @param f records the same operations with the same numbers at every call
   * @throws ArgumentError if it is no function
   */
  constructor(f: (set: FormulaSet, shared: readonly Tensor[]) => readonly Tensor[]) {
    checkFunction('Formula', f);
    this.#f = f;
  }

  /**
   * The results for a set.
   *
   * @param set tensors of one shape
   * @param shared what it reads besides, the same for many sets: tensors of shape []
   * @returns what the function returns for the set
   * @throws DisposedError if a tensor is disposed
   */
  of(set: FormulaSet, shared: readonly Tensor[] = []): readonly Tensor[] {
    const operands: Node[] = [];
    for (let i = 0; i < shared.length; i++) operands.push(nodeOf(shared[i]!, 'Formula'));
    for (let i = 0; i < set.length; i++) operands.push(nodeOf(set[i]!, 'Formula'));
    if (this.#fails || graph.casting !== null || !isSet(operands, shared.length)) return this.#f(set, shared);
    const { shape } = operands[shared.length]!;
    const known = this.#known.find((lines) => haveDtypes(lines, operands));
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
