/** Einstein summation: products of tensors over named axes. Operands are contracted two at a time, from the left. */
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { makeNode } from '../graph/build.ts';
import { compose } from '../graph/scope.ts';
import { ArgumentError, ShapeError, showShape } from '../shape/errors.ts';
import { promoteTypes } from '../shape/promotion.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';
import { diagonalNode } from './ranges.ts';

/** A tensor whose axes have names; names are single characters. */
interface Named {
  readonly node: Node;
  readonly names: readonly string[];
}

function parse(equation: string, count: number): { inputs: string[][]; output: string[] } {
  const [left = '', right, more] = equation.replaceAll(/\s+/g, '').split('->');
  const inputs = left.split(',').map((part) => [...part]);
  if (more !== undefined || inputs.length !== count) {
    throw new ArgumentError(
      'einsum',
      `equation '${equation}' names ${inputs.length} operands: ${count} are given; separate them by commas`,
    );
  }
  const seen = new Map<string, number>();
  for (const name of inputs.flat()) {
    if (!/^[A-Za-z]$/.test(name))
      throw new ArgumentError('einsum', `bad axis name '${name}' in '${equation}': names are single letters`);
    seen.set(name, (seen.get(name) ?? 0) + 1);
  }
  const output = right === undefined ? [...seen.keys()].filter((name) => seen.get(name) === 1).sort() : [...right];
  for (const name of output) {
    if (!seen.has(name) || output.indexOf(name) !== output.lastIndexOf(name)) {
      throw new ArgumentError(
        'einsum',
        `bad result axis '${name}' in '${equation}': each must appear once in the result and in an operand`,
      );
    }
  }
  return { inputs, output };
}

/** Repeated names of one operand become one axis, its diagonal. */
function withoutRepeats({ node, names }: Named): Named {
  for (let i = 0; i < names.length; i++) {
    const again = names.indexOf(names[i] as string, i + 1);
    if (again < 0) continue;
    if (node.shape[i] !== node.shape[again])
      throw new ShapeError(
        'einsum',
        `sizes differ: axis '${names[i]}' has ${node.shape[i]} and ${node.shape[again]} in ${showShape(node.shape)}`,
        [node.shape],
      );
    const rest = names.filter((_, axis) => axis !== i && axis !== again);
    return withoutRepeats({ node: diagonalNode('einsum', node, 0, i, again), names: [...rest, names[i] as string] });
  }
  return { node, names };
}

/** Sums axes that nothing else names. */
function sumUnused({ node, names }: Named, needed: ReadonlySet<string>): Named {
  const axes = names.map((_, i) => i).filter((i) => !needed.has(names[i] as string));
  return { node: p.reduce(node, 'sum', axes), names: names.filter((name) => needed.has(name)) };
}

function product(a: Named, b: Named, needed: ReadonlySet<string>): Named {
  const left = sumUnused(a, new Set([...needed, ...b.names]));
  const right = sumUnused(b, new Set([...needed, ...a.names]));
  const shared = left.names.filter((name) => right.names.includes(name));
  for (const name of shared) {
    const [m, n] = [left.node.shape[left.names.indexOf(name)], right.node.shape[right.names.indexOf(name)]];
    if (m !== n)
      throw new ShapeError(
        'einsum',
        `sizes differ: axis '${name}' has ${m} in ${showShape(left.node.shape)} and ${n} in ${showShape(right.node.shape)}`,
        [left.node.shape, right.node.shape],
      );
  }
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
 * Sums of products by an equation such as 'ij,jk->ik'. Source: NumPy `einsum`, without ellipses.
 *
 * @param equation names of each operand's axes, separated by commas, then '->' and the axes of the result; without an arrow the
 *   names that appear once, in alphabetical order
 * @throws ArgumentError for equations that make no sense, ShapeError where sizes of one name differ
 *
 * @example
 * einsum('ij,jk->ik', tensor([[1, 2]]), tensor([[3], [4]])); // [[11]]
 */
export function einsum(equation: string, ...tensors: readonly Tensor[]): Tensor {
  return compose('einsum', () => {
    const { inputs, output } = parse(equation, tensors.length);
    const nodes = tensors.map((t) => nodeOf(t));
    const dtype = nodes.map((node) => node.dtype).reduce((a, b) => promoteTypes('einsum', a, b));
    const named = nodes.map((node, i): Named => {
      const names = inputs[i] as string[];
      if (names.length !== node.shape.length) {
        throw new ShapeError(
          'einsum',
          `axes do not match: '${names.join('')}' names ${names.length} for shape ${showShape(node.shape)}`,
          [node.shape],
        );
      }
      return withoutRepeats({ node: p.cast(node, dtype), names });
    });
    let result = named[0] as Named;
    for (let i = 1; i < named.length; i++) {
      const later = named.slice(i + 1).flatMap(({ names }) => names);
      result = product(result, named[i] as Named, new Set([...output, ...later]));
    }
    result = sumUnused(result, new Set(output));
    return wrap(
      p.permute(
        result.node,
        output.map((name) => result.names.indexOf(name)),
      ),
    );
  });
}
