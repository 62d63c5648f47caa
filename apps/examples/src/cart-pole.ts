/** A pole on a cart (Barto, Sutton and Anderson, 1983), with the numbers of Gym's CartPole, and games of it. */
import { RandomStream } from '@polygrad/data';
import type { Result } from './train.ts';

/** Place, speed, angle and turn. */
export type State = readonly number[];

/** Most steps of a game. */
export const most = 200;

export class CartPole {
  #state: State = [0, 0, 0, 0];
  readonly #random: RandomStream;

  constructor(seed: number) {
    this.#random = new RandomStream(seed);
  }

  /** A state in which all is near 0. */
  reset(): State {
    this.#state = [0, 1, 2, 3].map(() => this.#random.below(10001) / 1e5 - 0.05);
    return this.#state;
  }

  /** The state after a push to the right or to the left; null where the pole has fallen. */
  push(right: boolean): State | null {
    const [x, v, angle, turn] = this.#state as [number, number, number, number];
    const force = right ? 10 : -10;
    const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
    const pull = (force + 0.05 * turn * turn * sine) / 1.1;
    const turning = (9.8 * sine - cosine * pull) / (0.5 * (4 / 3 - (0.1 * cosine * cosine) / 1.1));
    const going = pull - (0.05 * turning * cosine) / 1.1;
    this.#state = [x + 0.02 * v, v + 0.02 * going, angle + 0.02 * turn, turn + 0.02 * turning];
    const stands = Math.abs(this.#state[0]!) < 2.4 && Math.abs(this.#state[2]!) < 12 * (Math.PI / 180);
    return stands ? this.#state : null;
  }
}

/** One game: `choose` says 1 for a push to the right, `seen` is told what each push led to. Returns how many steps it lasted. */
export async function play(
  cart: CartPole,
  choose: (state: State) => number | Promise<number>,
  seen?: (state: State, action: number, next: State | null) => void,
): Promise<number> {
  let state = cart.reset();
  for (let count = 1; ; count++) {
    const action = await choose(state);
    const next = cart.push(action === 1);
    seen?.(state, action, next);
    if (next === null || count === most) return count;
    state = next;
  }
}

/** What games say: means of ten parts of them, as losses, and a line. */
export function report(lasted: readonly number[], last: number): Result {
  const average = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0) / list.length;
  const tenth = Math.ceil(lasted.length / 10);
  const parts = Array.from({ length: Math.ceil(lasted.length / tenth) }, (_, i) =>
    average(lasted.slice(i * tenth, (i + 1) * tenth)),
  );
  return {
    losses: parts.map((n) => -n),
    note: `the pole stood ${parts[0]!.toFixed(0)} steps at first, ${last.toFixed(0)} in new games at last (at most ${most})`,
  };
}

/** The mean of some new games, which a seed determines. */
export async function examine(
  choose: (state: State) => number | Promise<number>,
  games: number,
  start: number,
): Promise<number> {
  const cart = new CartPole(start);
  let sum = 0;
  for (let game = 0; game < games; game++) sum += await play(cart, choose);
  return sum / games;
}
