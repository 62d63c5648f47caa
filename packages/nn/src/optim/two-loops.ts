/** The direction of L-BFGS from its history: the recursion in two loops over pairs of moves and changes of the gradient. */
import { type DType, dispose, full, keep, noGrad, scope, sum, type Tensor } from '@polygrad/core/functions';

/** A move and the change of the gradient on it. */
export interface Pair {
  readonly move: Tensor;
  readonly change: Tensor;
  /** 1 / (move . change). */
  readonly inverse: number;
}

/**
 * Pairs of the history that one flush goes through. Every number of pairs has plans of its own; so those of long histories, too, are made of few.
 */
const pairsAtOnce = 8;

export const dot = (a: Tensor, b: Tensor): Tensor => sum(a.mul(b));
export const quietly = <Result>(body: () => Result): Result => scope(() => noGrad(body));

/** The gradient times the estimate of the second derivatives' inverse, downhill. */
export function inTwoLoops(gradient: Tensor, pairs: readonly Pair[], scale: number, dtype: DType): Tensor {
  const number = (value: number): Tensor => full([], value, { dtype });
  const parts = Array.from({ length: Math.ceil(pairs.length / pairsAtOnce) }, (_, i) =>
    pairs.slice(i * pairsAtOnce, (i + 1) * pairsAtOnce),
  );
  let q = quietly(() => keep(gradient.mul(-1)));
  const replace = (next: Tensor): void => {
    q.dispose();
    q = next;
  };
  const shares: Tensor[][] = [];
  for (const part of [...parts].reverse()) {
    const own: Tensor[] = [];
    const next = quietly(() => {
      let rest = q;
      for (const pair of [...part].reverse()) {
        const share = dot(pair.move, rest).mul(number(pair.inverse));
        own.unshift(keep(share));
        rest = rest.sub(pair.change.mul(share));
      }
      return keep(rest);
    });
    replace(next);
    shares.unshift(own);
  }
  replace(quietly(() => keep(q.mul(number(scale)))));
  for (const [at, part] of parts.entries()) {
    const next = quietly(() => {
      let sum = q;
      for (const [i, pair] of part.entries())
        sum = sum.add(pair.move.mul(shares[at]![i]!.sub(dot(pair.change, sum).mul(number(pair.inverse)))));
      return keep(sum);
    });
    replace(next);
    dispose(shares[at]!);
  }
  return q;
}
