/** Random tensors. What they hold is a suite of its own ("random"): keys, bits, and what follows from them. */
import { count, nd } from '../../oracle/ndarray.ts';
import { threefry } from '../../oracle/random.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import { type Notes, type OperationRow, smooth } from '../row.ts';

const random: Notes = {
  dtypes: 'see the suite "random"',
  orders: 'none: no input',
  kernels: '1 / -',
  goldens: 'own generator',
  cases: 'suite "random"',
  engines: 'reference, cpu',
};

const sampled: Notes = {
  ...random,
  dtypes: 'see the suite "sampling"',
  orders: 'none: positions',
  kernels: 'not pinned',
  cases: 'suite "sampling"',
  engines: 'all',
};

/** A call of `rand` with a key, for one of some shapes. */
export function randCall(pool: Pool, shapes: readonly (readonly number[])[]): Made {
  const key: [number, number] = [pool.c.nat(7), pool.c.nat(1000)];
  const shape = pool.c.pick(shapes);
  return {
    args: [shape, { key }],
    dtype: 'float32',
    formula: () =>
      nd(
        shape,
        Array.from({ length: count(shape) }, (_, i) => (threefry(key, [i, 0])[0] >>> 8) * 2 ** -24),
      ),
  };
}

const rand = (pool: Pool): Made => randCall(pool, [[4], [2, 3], [], [0, 2], [5, 7, 3]]);

function dropout(pool: Pool): Made | null {
  const x = pool.pick((v) => isFloat(v.dtype));
  if (x === null) return null;
  const key: [number, number] = [pool.c.nat(7), pool.c.nat(1000)];
  const p = pool.c.pick([0.5, 0.25, 0]);
  return {
    args: [ref(x), { p, key }],
    dtype: x.dtype,
    formula: (a) =>
      nd(
        x.shape,
        a.data.map((v, i) => (p === 0 ? v : threefry(key, [i, 0])[0] < (1 - p) * 2 ** 32 ? v / (1 - p) : 0)),
      ),
    noise: 'out',
  };
}

export const randomRows: readonly OperationRow[] = [
  { name: 'rand', specs: [], calls: [{ make: rand }], notes: random },
  { name: 'dropout', specs: [], calls: smooth(dropout), notes: { ...random, orders: 'as mul by its mask' } },
  ...['randn', 'randint', 'bernoulli', 'permutation'].map(
    (name): OperationRow => ({ name, specs: [], calls: [], notes: random }),
  ),
  ...['gumbel', 'categorical', 'multinomial', 'topKLogits', 'topPLogits'].map(
    (name): OperationRow => ({ name, specs: [], calls: [], notes: sampled }),
  ),
];
