/**
 * Values that know how they came about, as plain arrays of float64: what `backward()`, tapes and gradient functions do, without a line of the library.
 * Gradients are made of the same values, so they have gradients themselves.
 */
import { broadcastShapes, broadcastTo, count, flip, map, type NDArray, ravel, indices, zip } from './ndarray.ts';

/** A gradient of a result, for each of what it was made of. */
type Back = (gradient: Held) => readonly Held[];

/** What the values that a leaf had one after the other share. */
export interface Slot {
  grad: Held | null;
}

/** A value. */
export class Held {
  readonly array: NDArray;
  readonly from: readonly Held[];
  readonly back: Back;
  /** Whether backward() follows it. */
  readonly requires: boolean;
  /** Where a leaf adds up gradients. */
  readonly slot: Slot | null;
  /** An earlier backward() let go of how it came about. */
  released: boolean = false;

  constructor(array: NDArray, from: readonly Held[], back: Back, requires: boolean, slot: Slot | null = null) {
    this.array = array;
    this.from = from;
    this.back = back;
    this.requires = requires;
    this.slot = slot;
  }

  get leaf(): boolean {
    return this.slot !== null;
  }
}

/** What a tape has seen, in order. */
export class Recorder {
  readonly nodes: Set<Held> = new Set();
  readonly watched: Set<Held> = new Set();
  paused: boolean = false;

  knows(x: Held): boolean {
    return x.leaf || this.nodes.has(x) || this.watched.has(x);
  }
}

/** Functions of such values, and what is followed at the moment. */
export class Histories {
  #recorders: Recorder[] = [];
  #quiet = false;
  /** Whether backward() will follow what is made. */
  #leaves = true;

  leaf(array: NDArray, slot: Slot = { grad: null }): Held {
    return new Held(array, [], () => [], true, slot);
  }

  constant(array: NDArray): Held {
    return new Held(array, [], () => [], false);
  }

  #make(array: NDArray, from: readonly Held[], back: Back): Held {
    if (this.#quiet) return this.constant(array);
    const requires = this.#leaves && from.some((x) => x.requires);
    const made = new Held(array, from, back, requires);
    for (const r of this.#recorders) if (!r.paused && from.some((x) => r.knows(x))) r.nodes.add(made);
    return made;
  }

  add(a: Held, b: Held): Held {
    const shapes = [a.array.shape, b.array.shape];
    return this.#make(
      zip((x, y) => x! + y!, a.array, b.array),
      [a, b],
      (g) => shapes.map((shape) => this.sumTo(g, shape)),
    );
  }

  mul(a: Held, b: Held): Held {
    return this.#make(
      zip((x, y) => x! * y!, a.array, b.array),
      [a, b],
      (g) => [this.sumTo(this.mul(g, b), a.array.shape), this.sumTo(this.mul(g, a), b.array.shape)],
    );
  }

  scale(a: Held, by: number): Held {
    return this.#make(
      map(a.array, (x) => x * by),
      [a],
      (g) => [this.scale(g, by)],
    );
  }

  sin(a: Held): Held {
    return this.#make(map(a.array, Math.sin), [a], (g) => [this.mul(g, this.cos(a))]);
  }

  cos(a: Held): Held {
    return this.#make(map(a.array, Math.cos), [a], (g) => [this.scale(this.mul(g, this.sin(a)), -1)]);
  }

  flip(a: Held): Held {
    const axes = a.array.shape.map((_, axis) => axis);
    return this.#make(flip(a.array, axes), [a], (g) => [this.flip(g)]);
  }

  expand(a: Held, shape: readonly number[]): Held {
    return this.#make(broadcastTo(a.array, shape), [a], (g) => [this.sumTo(g, a.array.shape)]);
  }

  /** The sum over what broadcasting to a shape would repeat. */
  sumTo(a: Held, shape: readonly number[]): Held {
    if (a.array.shape.join() === shape.join()) return a;
    const whole = a.array.shape;
    const data = new Array<number>(count(shape)).fill(0);
    for (const index of indices(whole)) {
      const at = index.slice(whole.length - shape.length).map((i, axis) => (shape[axis] === 1 ? 0 : i));
      data[ravel(at, shape)]! += a.array.data[ravel(index, whole)]!;
    }
    return this.#make({ shape, data }, [a], (g) => [this.expand(g, whole)]);
  }

  detach(a: Held): Held {
    return this.constant(a.array);
  }

  /** Nothing that the body makes has a history. */
  quiet<T>(body: () => T): T {
    const before = this.#quiet;
    this.#quiet = true;
    try {
      return body();
    } finally {
      this.#quiet = before;
    }
  }

  /** Only backward() does not follow what the body makes: tapes do. */
  #apart<T>(body: () => T): T {
    const before = this.#leaves;
    this.#leaves = false;
    try {
      return body();
    } finally {
      this.#leaves = before;
    }
  }

  open(...watched: Held[]): Recorder {
    const made = new Recorder();
    for (const x of watched) made.watched.add(x);
    this.#recorders.push(made);
    return made;
  }

  close(recorder: Recorder): void {
    this.#recorders = this.#recorders.filter((r) => r !== recorder);
  }

  /** Gradients of the sum of a target, back through what `follows` says. backward() follows them if they are asked for with their graph. */
  #walk(target: Held, follows: (x: Held) => boolean, ends: (x: Held) => boolean, create: boolean): Map<Held, Held> {
    const order: Held[] = [];
    const seen = new Set<Held>();
    const visit = (x: Held): void => {
      if (seen.has(x)) return;
      seen.add(x);
      if (follows(x)) for (const y of x.from) visit(y);
      order.push(x);
    };
    visit(target);
    const run = (): Map<Held, Held> => {
      const ones = { shape: target.array.shape, data: target.array.data.map(() => 1) };
      const found = new Map([[target, this.constant(ones)]]);
      for (const x of order.reverse()) {
        const g = found.get(x);
        if (g === undefined || !follows(x)) continue;
        for (const [i, part] of x.back(g).entries()) {
          const y = x.from[i]!;
          if (!follows(y) && !ends(y)) continue;
          const before = found.get(y);
          found.set(y, before === undefined ? part : this.add(before, part));
        }
      }
      return found;
    };
    return create ? run() : this.#apart(run);
  }

  /** All that backward() would go through; null where an earlier one let go of it. */
  #reached(target: Held): Held[] | null {
    const found = new Set([target]);
    for (const x of found) if (!x.leaf) for (const y of x.from) if (y.requires) found.add(y);
    return [...found].some(({ released }) => released) ? null : [...found];
  }

  /** Whether backward() has something to go through. */
  canGoBack(target: Held): boolean {
    return target.requires && !target.leaf && this.#reached(target) !== null;
  }

  backward(target: Held, { retain, create }: { readonly retain: boolean; readonly create: boolean }): void {
    const reached = this.#reached(target)!;
    const found = this.#walk(
      target,
      (x) => x.requires && !x.leaf,
      (x) => x.leaf,
      create,
    );
    for (const x of reached) {
      const g = found.get(x);
      const { slot } = x;
      if (slot === null) x.released = !retain;
      else if (g !== undefined) slot.grad = slot.grad === null ? g : this.#added(slot.grad, g, create);
    }
  }

  #added(a: Held, b: Held, create: boolean): Held {
    return create ? this.add(a, b) : this.#apart(() => this.add(a, b));
  }

  /** What a tape gives: zeros where the target does not depend on the source. */
  gradient(recorder: Recorder, target: Held, source: Held, create: boolean): Held {
    const { paused } = recorder;
    recorder.paused = paused || !create;
    const found = this.#walk(
      target,
      (x) => recorder.nodes.has(x),
      (x) => recorder.knows(x),
      create,
    );
    recorder.paused = paused;
    return found.get(source) ?? this.constant(map(source.array, () => 0));
  }

  /** The gradient of a function of one value; others that it uses are constants to it. */
  slope(f: (x: Held) => Held, at: Held, create: boolean): Held {
    // A name of its own: the function may also use the value from outside.
    const run = (): readonly [Held, Recorder, Held] => {
      const own = this.scale(at, 1);
      const recorder = this.open(own);
      const result = f(own);
      this.close(recorder);
      return [own, recorder, result];
    };
    const [own, recorder, result] = create ? run() : this.#apart(run);
    const found = this.#walk(
      result,
      (x) => recorder.nodes.has(x),
      (x) => recorder.watched.has(x),
      create,
    );
    return found.get(own) ?? this.constant(map(at.array, () => 0));
  }

  shapeOf(...of: readonly Held[]): readonly number[] {
    return broadcastShapes(...of.map(({ array }) => array.shape));
  }
}
