/** Einstein summation: products of tensors over named axes. Operands are contracted two at a time, from the left. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { widenedFloat } from '@polygrad/compiler/shape/dtype';
import { promoteTypes } from '@polygrad/compiler/shape/promotion';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import { diagonalNode } from './matrices.ts';
import { say } from '@polygrad/compiler/shape/shown';

/** A tensor whose axes have names; names are single characters. */
interface Named {
  readonly node: Node;
  readonly names: readonly string[];
}

/** Names of axes per operand and of the result, as the equation has them. '...' is one entry. */
interface Equation {
  readonly inputs: readonly (readonly string[])[];
  /** Null if the equation has no arrow. */
  readonly output: readonly string[] | null;
}

const dots = '...';

function terms(part: string, equation: string): string[] {
  const names: readonly string[] = part.match(/\.\.\.|[\s\S]/g) ?? [];
  for (const name of names) {
    if (name !== dots && !/^[A-Za-z]$/.test(name))
      throw new ArgumentError(
        'einsum',
        say`bad axis name '${name}' in '${equation}': names are single letters, or '...' for the axes without a name`,
      );
  }
  if (names.indexOf(dots) !== names.lastIndexOf(dots))
    throw new ArgumentError('einsum', say`two ellipses in '${part}' of '${equation}': an operand has at most one`);
  return [...names];
}

function parse(equation: string, count: number): Equation {
  if (typeof equation !== 'string')
    throw new ArgumentError(
      'einsum',
      say`no equation: ${typeof equation}; the first argument is text like 'ij,jk->ik'`,
    );
  const [left = '', right, more] = equation.replaceAll(/\s+/g, '').split('->');
  const inputs = left.split(',').map((part) => terms(part, equation));
  if (more !== undefined) throw new ArgumentError('einsum', say`two arrows in '${equation}': one result is named`);
  if (inputs.length !== count) {
    throw new ArgumentError(
      'einsum',
      say`equation '${equation}' names ${inputs.length} operands: ${count} are given; give one after the other, einsum('ij,jk->ik', a, b)`,
    );
  }
  return { inputs, output: right === undefined ? null : terms(right, equation) };
}

/** Names of the axes that '...' covers, the last ones first: they align at the end. */
const unnamed = (count: number): string[] => Array.from({ length: count }, (_, i) => `.${count - 1 - i}`);

/** The equation with '...' written out, for operands of these shapes. */
function spelled(equation: string, { inputs, output }: Equation, nodes: readonly Node[]): [string[][], string[]] {
  let most = 0;
  const full = inputs.map((names, i) => {
    const { shape } = nodes[i]!;
    const rest = shape.length - (names.length - (names.includes(dots) ? 1 : 0));
    if (rest < 0 || (rest > 0 && !names.includes(dots))) {
      throw new ShapeError(
        'einsum',
        say`axes do not match: '${names.join('')}' in '${equation}' for shape ${showShape(shape)}`,
        [shape],
      );
    }
    most = Math.max(most, rest);
    return names.flatMap((name) => (name === dots ? unnamed(rest) : [name]));
  });
  const all = full.flat();
  const once = [...new Set(all)].filter((name) => !name.startsWith('.') && all.indexOf(name) === all.lastIndexOf(name));
  const result =
    output === null
      ? [...unnamed(most), ...once.sort()]
      : output.flatMap((name) => (name === dots ? unnamed(most) : [name]));
  for (const name of result) {
    if (!all.includes(name) || result.indexOf(name) !== result.lastIndexOf(name)) {
      throw new ArgumentError(
        'einsum',
        say`bad result axis '${name}' in '${equation}': each must appear once in the result and in an operand`,
      );
    }
  }
  return [full, result];
}

/** Axes of size 1 that another operand has at full size are left out: they broadcast. Throws where sizes differ otherwise. */
function withoutStretched(operands: readonly Named[]): Named[] {
  const sizes = new Map<string, { readonly size: number; readonly shape: readonly number[] }>();
  for (const { node, names } of operands) {
    names.forEach((name, i) => {
      const size = node.shape[i]!;
      const other = sizes.get(name);
      if (other === undefined || other.size === 1) sizes.set(name, { size, shape: node.shape });
      else if (size !== 1 && size !== other.size)
        throw new ShapeError(
          'einsum',
          say`sizes differ: axis ${name.startsWith('.') ? dots : say`'${name}'`} has ${other.size} in ${showShape(other.shape)} and ${size} in ${showShape(node.shape)}`,
          [other.shape, node.shape],
        );
    });
  }
  return operands.map(({ node, names }) => {
    const own = (i: number): boolean => node.shape[i] !== 1 || sizes.get(names[i]!)?.size === 1;
    return {
      node: p.reshape(
        node,
        node.shape.filter((_, i) => own(i)),
      ),
      names: names.filter((_, i) => own(i)),
    };
  });
}

/** Repeated names of one operand become one axis, its diagonal. */
function withoutRepeats({ node, names }: Named): Named {
  for (let i = 0; i < names.length; i++) {
    const again = names.indexOf(names[i]!, i + 1);
    if (again < 0) continue;
    if (node.shape[i] !== node.shape[again])
      throw new ShapeError(
        'einsum',
        say`sizes differ: axis '${names[i]}' has ${node.shape[i]} and ${node.shape[again]} in ${showShape(node.shape)}`,
        [node.shape],
      );
    const rest = names.filter((_, axis) => axis !== i && axis !== again);
    return withoutRepeats({ node: diagonalNode('einsum', node, 0, i, again), names: [...rest, names[i]!] });
  }
  return { node, names };
}

/** Sums axes that nothing else names. */
function sumUnused({ node, names }: Named, needed: ReadonlySet<string>): Named {
  const axes = names.map((_, i) => i).filter((i) => !needed.has(names[i]!));
  return { node: p.reduce(node, 'sum', axes), names: names.filter((name) => needed.has(name)) };
}

function product(a: Named, b: Named, needed: ReadonlySet<string>): Named {
  const left = sumUnused(a, new Set([...needed, ...b.names]));
  const right = sumUnused(b, new Set([...needed, ...a.names]));
  const shared = left.names.filter((name) => right.names.includes(name));
  const batch = shared.filter((name) => needed.has(name));
  const summed = shared.filter((name) => !needed.has(name));
  const node = makeNode('dotGeneral', [left.node, right.node], {
    lhsBatch: batch.map((name) => left.names.indexOf(name)),
    rhsBatch: batch.map((name) => right.names.indexOf(name)),
    lhsContract: summed.map((name) => left.names.indexOf(name)),
    rhsContract: summed.map((name) => right.names.indexOf(name)),
  });
  const free = (names: readonly string[]): string[] => names.filter((name) => !shared.includes(name));
  return { node, names: [...batch, ...free(left.names), ...free(right.names)] };
}

/**
 * Sums of products by an equation such as 'ij,jk->ik'. Source: NumPy `einsum`.
 *
 * Operands are contracted two at a time from the left, so put those first whose product is small.
 *
 * @param equation names of each operand's axes, separated by commas, then '->' and the axes of the result. Without an arrow: the
 *   axes of '...', then the names that appear once, in alphabetical order. A name twice in one operand is its diagonal; '...' stands
 *   for axes without a name. They broadcast between operands and are summed if the result does not have them
 * @returns of the common dtype, which is not bool
 * @throws ArgumentError for equations that make no sense, ShapeError where axes or sizes of one name differ
 *
 * @example
 * einsum('ij,jk->ik', tensor([[1, 2]]), tensor([[3], [4]])); // [[11]]
 * einsum('ii', tensor([[1, 2], [3, 4]])); // 5
 */
export function einsum(equation: string, ...tensors: readonly Tensor[]): Tensor {
  return compose('einsum', () => {
    const parsed = parse(equation, tensors.length);
    const nodes = tensors.map((t) => nodeOf(t));
    const [inputs, output] = spelled(equation, parsed, nodes);
    const common = nodes.map((node) => node.dtype).reduce((a, b) => promoteTypes('einsum', a, b));
    // Products on the way are rounded to 32 bits at least.
    const dtype = nodes.length > 2 ? widenedFloat(common) : common;
    const named = withoutStretched(
      nodes.map((node, i) => withoutRepeats({ node: p.cast(node, dtype), names: inputs[i]! })),
    );
    let result = named[0]!;
    for (let i = 1; i < named.length; i++) {
      const later = named.slice(i + 1).flatMap(({ names }) => names);
      result = product(result, named[i]!, new Set([...output, ...later]));
    }
    result = sumUnused(result, new Set(output));
    const ordered = p.permute(
      result.node,
      output.map((name) => result.names.indexOf(name)),
    );
    return wrap(p.cast(ordered, common));
  });
}
