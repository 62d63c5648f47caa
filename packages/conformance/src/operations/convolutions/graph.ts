/** Graph convolution in both forms of the graph. */
import * as pg from '@polygrad/core';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { denseEdges, graphConvolution } from '../../oracle/normalization.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { drawn, parts, sums, vectors } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type Instance, type OpSpec, spec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';

const any = uniform(-1, 1);
const positive = uniform(0.5, 2);

function graphSpecs(): OpSpec[] {
  const cases = [
    { x: [3, 2], w: [2, 1] },
    { x: [3, 2], w: [2, 3], selfLoops: true },
    { x: [2, 4, 2], w: [2, 2], selfLoops: true, normalize: 'symmetric' as const },
    { x: [4, 1], w: [1, 2], normalize: 'symmetric' as const },
    { x: [1, 1], w: [1, 1], selfLoops: true },
    { x: [33, 17], w: [17, 9], selfLoops: true, normalize: 'symmetric' as const },
  ];
  const instances = (middle: (r: Random, n: number) => NDArray): Instance<4>[] =>
    cases.map(({ x, w, ...options }) => ({
      label: `[${x}] by [${w}] ${JSON.stringify(options)}`,
      small: count(x) <= 30,
      options,
      draw: (r: Random) => [
        sample(r, x, any),
        middle(r, x[x.length - 2] as number),
        sample(r, w, any),
        sample(r, w.slice(1), any),
      ],
    }));
  /** Edges of a graph in which node 0 has no incoming edge and some edges appear twice. */
  const edges = (n: number): { sources: number[]; targets: number[] } => {
    const all = Array.from({ length: 2 * n }, (_, e) => [(e * 5 + 1) % n, n === 1 ? 0 : 1 + ((e * 3) % (n - 1))]);
    return { sources: all.map(([s]) => s as number), targets: all.map(([, t]) => t as number) };
  };
  const terms = (inputs: NDArray[]): number => count(inputs[0]!.shape) + 1;
  return [
    spec<4>({
      name: 'graphConv',
      dtypes: floats,
      // 16-bit floats are rounded after each of several products.
      more: [],
      instances: instances((r, n) => sample(r, [n, n], positive)),
      run: ([x, a, w, bias], o) => pg.graphConv(x, a, w, { ...o, bias: bias }),
      oracle: ([x, a, w, b], o) => graphConvolution(x, a, w, b, o),
      terms,
      gradient: { of: [0, 1, 2, 3], order: 2 },
    }),
    spec<4>({
      name: 'graphConv by edges',
      dtypes: floats,
      // 16-bit floats are rounded after each of several products.
      more: [],
      instances: instances((r, n) => sample(r, [2 * n], positive)),
      run: ([x, weights, w, bias], o) => {
        const { sources, targets } = edges(x.shape[x.ndim - 2] as number);
        const list = {
          sources: pg.tensor(sources, { dtype: 'int32' }),
          targets: pg.tensor(targets, { dtype: 'int32' }),
        };
        return pg.graphConv(x, { ...list, weights: weights }, w, {
          ...o,
          bias: bias,
        });
      },
      oracle: ([x, weights, w, b], o) => {
        const n = x.shape[x.shape.length - 2] as number;
        const { sources, targets } = edges(n);
        const dense = denseEdges(sources, targets, weights, n);
        return graphConvolution(x, dense, w, b, o);
      },
      terms,
      gradient: { of: [0, 1, 2, 3], order: 2 },
    }),
  ];
}

/** Features of nodes along edges with positive weights. */
function graphCall(pool: Pool): Made | null {
  const x = vectors(pool, 2, 3, (v) => v.data.length < 200);
  if (x === null) return null;
  const [nodes, features] = x.shape.slice(-2) as [number, number];
  const edges = parts(pool, x.dtype, [nodes, nodes]);
  const width = pool.c.pick([2, 1, 3]);
  const weight = drawn(pool, x.dtype, [features, width]);
  const bias = drawn(pool, x.dtype, [width]);
  const options = {
    ...(pool.c.nat(2) === 0 ? { selfLoops: true } : {}),
    ...(pool.c.nat(2) === 0 ? { normalize: 'symmetric' } : {}),
  };
  return {
    args: [ref(x), ref(edges), ref(weight), { ...options, bias: ref(bias) }],
    dtype: x.dtype,
    formula: (...given) => {
      const [a, by, w, b] = given as [NDArray, NDArray, NDArray, NDArray];
      return graphConvolution(a, by, w, b, options);
    },
    ...sums(x.dtype),
  };
}

export const graphRows: readonly OperationRow[] = [
  { name: 'graphConv', specs: graphSpecs(), calls: smooth(graphCall), notes: { goldens: 'PyTorch 1.13 has none' } },
];
