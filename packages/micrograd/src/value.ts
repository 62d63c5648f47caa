/**
 * `Value`: a number that remembers how it was made, so that it can say what it would take to change it.
 *
 * After Andrej Karpathy's micrograd. Every operation makes a new Value, which holds its parents and a function that hands its gradient on to them.
 * `backward` calls these functions from the result to the leaves. Nothing else is needed to train a network.
 */

/** What operations take: a Value, or a number, which is a constant leaf. */
export type Operand = Value | number;

const asValue = (x: Operand): Value => (x instanceof Value ? x : new Value(x));

/**
 * A number with a gradient.
 *
 * @example
 * const a = new Value(2);
 * const b = new Value(-3);
 * const y = a.mul(b).add(a.pow(2));
 * y.backward();
 * [y.data, a.grad, b.grad]; // [-2, 1, 2]
 */
export class Value {
  /** The number itself. */
  data: number;
  /** How much the result changes when this number does: filled in by `backward` of the result. */
  grad = 0;
  /** What it was made from, and by which operation; a leaf has no parents. */
  readonly parents: readonly Value[];
  readonly op: string;
  /** A name for drawings. */
  label = '';
  /** Adds this Value's part of the gradient to its parents. */
  #handOn: () => void = () => {};

  constructor(data: number, parents: readonly Value[] = [], op = '') {
    if (typeof data !== 'number') throw new TypeError(`[Value] a Value holds a number: got ${typeof data}`);
    this.data = data;
    this.parents = parents;
    this.op = op;
  }

  /** A result: its number, what it is made from, and the slope by each of these. */
  static #made(data: number, op: string, parents: readonly Value[], slopes: readonly number[]): Value {
    const result = new Value(data, parents, op);
    result.#handOn = () => {
      // The chain rule. A gradient is added, not set: a number may be used several times.
      for (const [i, parent] of parents.entries()) parent.grad += slopes[i]! * result.grad;
    };
    return result;
  }

  add(other: Operand): Value {
    const b = asValue(other);
    return Value.#made(this.data + b.data, '+', [this, b], [1, 1]);
  }

  mul(other: Operand): Value {
    const b = asValue(other);
    return Value.#made(this.data * b.data, '*', [this, b], [b.data, this.data]);
  }

  /** To the power of a number that is no Value. */
  pow(exponent: number): Value {
    return Value.#made(this.data ** exponent, `^${exponent}`, [this], [exponent * this.data ** (exponent - 1)]);
  }

  exp(): Value {
    const y = Math.exp(this.data);
    return Value.#made(y, 'exp', [this], [y]);
  }

  log(): Value {
    return Value.#made(Math.log(this.data), 'log', [this], [1 / this.data]);
  }

  tanh(): Value {
    const y = Math.tanh(this.data);
    return Value.#made(y, 'tanh', [this], [1 - y * y]);
  }

  relu(): Value {
    return Value.#made(Math.max(0, this.data), 'relu', [this], [this.data > 0 ? 1 : 0]);
  }

  // The rest is made of these.

  neg(): Value {
    return this.mul(-1);
  }
  sub(other: Operand): Value {
    return this.add(asValue(other).neg());
  }
  div(other: Operand): Value {
    return this.mul(asValue(other).pow(-1));
  }

  /** Every Value that this one is made of, parents first, each once. */
  history(): Value[] {
    const order: Value[] = [];
    const seen = new Set<Value>();
    // A stack of our own: graphs of long sums are deeper than calls may be.
    const stack: { readonly value: Value; next: number }[] = [{ value: this, next: 0 }];
    seen.add(this);
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const parent = top.value.parents[top.next++];
      if (parent === undefined) order.push(stack.pop()!.value);
      else if (!seen.has(parent)) {
        seen.add(parent);
        stack.push({ value: parent, next: 0 });
      }
    }
    return order;
  }

  /** Sets `grad` of everything that this one is made of. What was there before is forgotten. */
  backward(): void {
    const order = this.history();
    for (const value of order) value.grad = 0;
    this.grad = 1;
    // Results before parents: a gradient is whole before it is handed on.
    for (const value of order.reverse()) value.#handOn();
  }

  toString(): string {
    return `Value(${this.data}, grad ${this.grad})`;
  }
}

/**
 * The sum of some Values.
 *
 * @example
 * sumOf([new Value(1), new Value(2)]).data; // 3
 */
export function sumOf(values: readonly Value[]): Value {
  return values.reduce((total, v) => total.add(v), new Value(0));
}
