/** Polygrad's running results, sorts and indexing, for the suite `indexing`. */
import {
  argSort,
  cast,
  cumMax,
  cumSum,
  scatter,
  scatterAdd,
  scope,
  sort,
  take,
  type Tensor,
  tensor,
  topK,
} from '@polygrad/core';
import type { OrderWork } from '../work/cases.ts';
import type { Tools } from '../work/tools.ts';
import { input } from './polygrad-input.ts';

/** Operands, and the work as a function of them. */
export interface OrderOperation {
  readonly operands: readonly Tensor[];
  readonly compute: () => Tensor;
}

export function orderOperation(tools: Tools, { kind, n }: OrderWork): OrderOperation {
  const side = Math.round(Math.sqrt(n));
  const square = kind.endsWith('rows') || kind.endsWith('columns');
  const a = input(tools, 1, -1, 1, ...(square ? [side, side] : [n]));
  const [b, at] =
    kind.startsWith('scatter') || kind === 'take' ? [input(tools, 2, -1, 1, n), places(tools, n)] : [a, a];
  const compute: Record<OrderWork['kind'], () => Tensor> = {
    'cum-sum': () => cumSum(a),
    'cum-sum-rows': () => cumSum(a, 1),
    'cum-sum-columns': () => cumSum(a, 0),
    'cum-max': () => cumMax(a),
    'cum-max-rows': () => cumMax(a, 1),
    sort: () => sort(a),
    'sort-rows': () => sort(a, 1),
    'arg-sort': () => scope(() => cast(argSort(a), 'float32')),
    'top-10': () => scope(() => topK(a, 10)[0]),
    'top-1000': () => scope(() => topK(a, 1000)[0]),
    'top-10-rows': () => scope(() => topK(a, 10)[0]),
    scatter: () => scatter(a, at, b),
    'scatter-add': () => scatterAdd(a, at, b),
    take: () => take(a, at),
  };
  return { operands: b === a ? [a] : [a, b, at], compute: compute[kind] };
}

function places(tools: Tools, n: number): Tensor {
  return tensor(
    Int32Array.from(tools.fill(3, n, 0, n), (x) => Math.min(Math.floor(x), n - 1)),
    { shape: [n] },
  );
}
