/** What running results, sorts and scatters must be, in float64, by the plainest means. */
import type { OrderWork } from './cases.ts';
import { fill, probePositions } from './inputs.ts';

/** Values are only moved; peers write them with nine digits. */
const exact = 1e-7;

export function expectedOrder({ kind, n }: OrderWork): { readonly values: readonly number[]; readonly atol: number } {
  const side = Math.round(Math.sqrt(n));
  const a = Float64Array.from(fill(1, n, -1, 1));
  const at = (result: ArrayLike<number>, atol: number): { values: number[]; atol: number } => ({
    values: probePositions(result.length).map((i) => result[i]!),
    atol,
  });
  const each = (length: number, f: (line: Float64Array) => Float64Array): Float64Array => {
    const parts = Array.from({ length: n / length }, (_, i) => f(a.slice(i * length, (i + 1) * length)));
    const result = new Float64Array(parts.reduce((total, part) => total + part.length, 0));
    let from = 0;
    for (const part of parts) {
      result.set(part, from);
      from += part.length;
    }
    return result;
  };
  const running =
    (f: (x: number, y: number) => number) =>
    (line: Float64Array): Float64Array => {
      let value: number | null = null;
      return line.map((x) => (value = value === null ? x : f(value, x)));
    };
  const sorted = (line: Float64Array): Float64Array => line.sort();
  const top =
    (k: number) =>
    (line: Float64Array): Float64Array =>
      line.sort().reverse().slice(0, k);
  const add = (x: number, y: number): number => x + y;
  switch (kind) {
    case 'cum-sum':
      return at(running(add)(a), 0.1);
    case 'cum-sum-rows':
      return at(each(side, running(add)), 1e-3);
    case 'cum-sum-columns': {
      const result = a.slice();
      for (let i = side; i < n; i++) result[i] = result[i]! + result[i - side]!;
      return at(result, 1e-3);
    }
    case 'cum-max':
      return at(running(Math.max)(a), exact);
    case 'cum-max-rows':
      return at(each(side, running(Math.max)), exact);
    case 'sort':
      return at(sorted(a), exact);
    case 'sort-rows':
      return at(each(side, sorted), exact);
    case 'arg-sort': {
      const order = Float64Array.from(a.keys());
      return at(
        order.sort((i, j) => a[i]! - a[j]! || i - j),
        0,
      );
    }
    case 'top-10':
      return at(top(10)(a), exact);
    case 'top-1000':
      return at(top(1000)(a), exact);
    case 'top-10-rows':
      return at(each(side, top(10)), exact);
    case 'scatter':
    case 'scatter-add':
    case 'take': {
      const places = fill(3, n, 0, n).map((x) => Math.min(Math.floor(x), n - 1));
      if (kind === 'take')
        return at(
          a.map((_, i) => a[places[i]!]!),
          exact,
        );
      const updates = fill(2, n, -1, 1);
      places.forEach((place, i) => {
        const update = updates[i]!;
        a[place] = kind === 'scatter' ? update : a[place]! + update;
      });
      return at(a, 1e-5);
    }
  }
  return kind satisfies never;
}
