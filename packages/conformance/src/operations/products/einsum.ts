/** Sums of products by equations: traces, batches, repeated letters, "...". */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { einsum } from '../../oracle/linear.ts';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { total } from '../../oracle/sums.ts';
import { drawn, operand, small, sums } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import { type OperationRow, smooth } from '../row.ts';
import { productSpecs, type Shape } from './row.ts';

/** Equation for the library; the same with '...' written out, for the oracle. */
const equations: readonly {
  readonly text: string;
  readonly terms: string[];
  readonly out: string;
  readonly shapes: Shape[];
}[] = [
  {
    text: 'ij,jk->ik',
    terms: ['ij', 'jk'],
    out: 'ik',
    shapes: [
      [2, 3],
      [3, 4],
    ],
  },
  {
    text: 'ij,jk',
    terms: ['ij', 'jk'],
    out: 'ik',
    shapes: [
      [2, 3],
      [3, 4],
    ],
  },
  { text: 'ba', terms: ['ba'], out: 'ab', shapes: [[2, 3]] },
  { text: 'ii', terms: ['ii'], out: '', shapes: [[3, 3]] },
  { text: 'ii->i', terms: ['ii'], out: 'i', shapes: [[3, 3]] },
  { text: 'iji->j', terms: ['iji'], out: 'j', shapes: [[3, 2, 3]] },
  { text: 'iii->i', terms: ['iii'], out: 'i', shapes: [[3, 3, 3]] },
  { text: 'i,j->ji', terms: ['i', 'j'], out: 'ji', shapes: [[3], [4]] },
  {
    text: 'ij,ij->',
    terms: ['ij', 'ij'],
    out: '',
    shapes: [
      [2, 3],
      [2, 3],
    ],
  },
  {
    text: 'bij,bjk->bik',
    terms: ['bij', 'bjk'],
    out: 'bik',
    shapes: [
      [2, 3, 4],
      [2, 4, 2],
    ],
  },
  {
    text: '...ij,...jk->...ik',
    terms: ['uvij', 'vjk'],
    out: 'uvik',
    shapes: [
      [2, 1, 2, 3],
      [4, 3, 2],
    ],
  },
  {
    text: 'i...,i...',
    terms: ['iuv', 'iv'],
    out: 'uv',
    shapes: [
      [3, 2, 4],
      [3, 1],
    ],
  },
  { text: '...ii->...i', terms: ['uvii'], out: 'uvi', shapes: [[2, 2, 3, 3]] },
  { text: '...a->a', terms: ['uva'], out: 'a', shapes: [[2, 3, 4]] },
  {
    text: 'ij,jk,kl->li',
    terms: ['ij', 'jk', 'kl'],
    out: 'li',
    shapes: [
      [2, 3],
      [3, 4],
      [4, 2],
    ],
  },
  { text: 'i,ij,j', terms: ['i', 'ij', 'j'], out: '', shapes: [[2], [2, 3], [3]] },
  {
    text: 'bhqd,bhkd->bhqk',
    terms: ['bhqd', 'bhkd'],
    out: 'bhqk',
    shapes: [
      [2, 2, 3, 5],
      [2, 2, 4, 5],
    ],
  },
  {
    text: 'ij,ij->ij',
    terms: ['ij', 'ij'],
    out: 'ij',
    shapes: [
      [2, 1],
      [1, 3],
    ],
  },
  { text: ' a b , b -> a ', terms: ['ab', 'b'], out: 'a', shapes: [[2, 3], [3]] },
  { text: ',i->i', terms: ['', 'i'], out: 'i', shapes: [[], [3]] },
];

/** Equations of random calls, and the letters of operands and result. */
const drawnEquations: readonly [string, readonly string[], string][] = [
  ['ij,jk->ik', ['ij', 'jk'], 'ik'],
  ['ij,kj->ik', ['ij', 'kj'], 'ik'],
  ['ij,ij->i', ['ij', 'ij'], 'i'],
  ['i,j->ji', ['i', 'j'], 'ji'],
  ['bij,bjk->bik', ['bij', 'bjk'], 'bik'],
  ['bij,bkj->ikb', ['bij', 'bkj'], 'ikb'],
  ['ij->ji', ['ij'], 'ji'],
  ['ij->', ['ij'], ''],
  ['ijk->kj', ['ijk'], 'kj'],
  ['ii->i', ['ii'], 'i'],
  ['ij,j,i->j', ['ij', 'j', 'i'], 'j'],
];

function equation(pool: Pool): Made | null {
  const [text, terms, output] = pool.c.pick(drawnEquations);
  const first = terms[0]!;
  const a = operand(
    pool,
    first.length,
    first.length,
    (v) => isFloat(v.dtype) && (first !== 'ii' || v.shape[0] === v.shape[1]) && v.data.length < 600,
  );
  if (a === null) return null;
  const sizes = new Map([...first].map((name, i) => [name, a.shape[i]!]));
  const operands = terms.slice(1).map((term) => {
    for (const name of term) if (!sizes.has(name)) sizes.set(name, pool.c.pick([3, 2, 1, 5]));
    const shape = [...term].map((name) => sizes.get(name) as number);
    return (
      pool.pick((v) => v.dtype === a.dtype && small(v) && v.shape.join() === shape.join()) ??
      drawn(pool, a.dtype, shape)
    );
  });
  return {
    args: [text, ref(a), ...operands.map(ref)],
    dtype: a.dtype,
    formula: (...xs) => einsum(terms, output, xs),
    ...sums(a.dtype),
  };
}

export const einsumRows: readonly OperationRow[] = [
  {
    name: 'einsum',
    specs: productSpecs(
      equations.map(({ text, terms, out, shapes }) => ({
        name: `einsum ${text}`,
        shapes: [shapes],
        run: (xs: Tensor[]) => pg.einsum(text, ...xs),
        f: (xs: NDArray[]) => einsum(terms, out, xs),
        terms: (xs: NDArray[]) => total(xs.map((x) => count(x.shape))) + 2 * xs.length,
      })),
    ),
    calls: smooth(equation),
  },
];
