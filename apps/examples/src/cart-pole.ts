/** A pole on a cart (Barto, Sutton and Anderson, 1983), with the numbers of Gym's CartPole. */
export class CartPole {
  #state: number[] = [0, 0, 0, 0];
  #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  #random(): number {
    this.#seed = (Math.imul(this.#seed, 1103515245) + 12345) & 0x7fffffff;
    return this.#seed / 0x7fffffff;
  }

  /** Place, speed, angle and turn, all near 0. */
  reset(): number[] {
    this.#state = [0, 1, 2, 3].map(() => this.#random() * 0.1 - 0.05);
    return this.#state;
  }

  /** The state after a push to the right or to the left; null where the pole has fallen. */
  push(right: boolean): number[] | null {
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
