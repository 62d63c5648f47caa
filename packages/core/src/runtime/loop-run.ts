/**
 * Runs the steps of one loop (`scan`).
 *
 * In: a loop node whose sources are in memory. Out: storage of its outputs. The body has one plan, whatever the length: it
 * is made for the first step and bound to the slices of each step. Carries alternate between two buffers. If all values of
 * a carry are needed, they are rows of one buffer. Work before and after a loop is in loops.ts.
 */
import type { Binding, Command } from '../engine/engine.ts';
import { UnsupportedError } from '../engine/errors.ts';
import type { PoolBuffer } from '../engine/pool.ts';
import { LoopBody } from '../graph/loop.ts';
import { type Attrs, isOp, type Node, type NodeStorage, realise, release, retain } from '../graph/node.ts';
import { bufferNode, makeAgain, record } from '../graph/primitives.ts';
import { graph } from '../graph/state.ts';
import { storageIn } from '../planner/capture/captured-graph.ts';
import type { Plan } from '../planner/plan.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { rowMajorStrides, type Shape, sizeOf, type View } from '@polygrad/compiler/shape/view';
import { type Patience, planOf, run, unstarted } from './run.ts';
import { runs, type EngineState } from './state.ts';

export type Loop = Node<'loop'>;

/** A buffer and an offset into it, in bytes. */
interface Address {
  readonly buffer: PoolBuffer;
  readonly offset: number;
}

/** Where something is at each step. */
type Place = (step: number) => Address;

/** Values of one shape as rows of a buffer, at offsets that the engine can bind. */
class Rows {
  readonly buffer: PoolBuffer;
  /** Bytes from one row to the next. */
  readonly pitch: number;
  readonly #element: number;
  readonly #strides: readonly number[];

  constructor({ engine, pool, elementBytes }: EngineState, { shape, dtype }: Node, count: number) {
    this.#element = elementBytes[dtypeInfo[dtype].id]!;
    this.#strides = rowMajorStrides(shape);
    const align = Math.max(engine.caps.bindAlign, this.#element);
    this.pitch = Math.ceil((sizeOf(shape) * this.#element) / align) * align;
    this.buffer = pool.alloc(this.pitch * count);
  }

  row(at: number): Address {
    return { buffer: this.buffer, offset: at * this.pitch };
  }

  /** One row as a value, with a reference count. */
  one(at: number): NodeStorage {
    this.buffer.retain();
    return { buffer: this.buffer, view: { strides: this.#strides, offset: (at * this.pitch) / this.#element } };
  }

  /** All rows from `first` on as a value, with a reference count. */
  all(first: number): NodeStorage {
    const { buffer, view } = this.one(first);
    return { buffer, view: { strides: [this.pitch / this.#element, ...view.strides], offset: view.offset } };
  }
}

/** A placeholder buffer for the captured graph: bound nodes never count as aliases, wherever they are at the first step. */
function standIn({ pool }: EngineState): NodeStorage['buffer'] {
  const nothing = (): void => {};
  const buffer = { id: 0, retain: nothing, release: nothing, pool, mark: 0, index: 0 };
  return buffer;
}

const never = (): boolean => false;

/** A submission ends with the step that brings it to this many commands. */
const mostCommands = 1024;

/** One execution of a loop: its steps, and the outputs that have users. */
class LoopRun {
  readonly state: EngineState;
  readonly body: LoopBody;
  readonly length: number;
  readonly reverse: boolean;
  /** Sources in memory on this engine. */
  readonly sources: readonly NodeStorage[];
  readonly outputs: readonly Node<'loopOutput'>[];
  /** What a step computes: the carries after it, then the values kept of each step. */
  readonly roots: readonly Node[];
  readonly commands: Command[] = [];
  /** Where bound nodes and constants are at each step. */
  readonly places: Map<Node, Place> = new Map();
  /** Where each root is written at each step. */
  readonly targets: Place[][] = [];
  readonly #held: PoolBuffer[] = [];
  readonly #bound: { readonly node: Node; readonly before: NodeStorage | null }[] = [];
  /** For each carry: all of its values if they are needed; else the two buffers it alternates between. */
  readonly #all: (Rows | null)[] = [];
  readonly #pairs: (readonly [Rows, Rows] | null)[] = [];
  readonly #stacks: Map<Node, Rows> = new Map();

  constructor(state: EngineState, { attr, src }: Loop, outputs: readonly Node<'loopOutput'>[]) {
    const { body, length, reverse } = attr;
    this.state = state;
    this.body = body;
    this.length = length;
    this.reverse = reverse;
    this.outputs = outputs;
    this.sources = src.map((source) => {
      const storage = source.storage === null ? null : storageIn(source, state.pool);
      if (storage === null) throw new Error('[loop] a source is not in memory; this is a bug');
      return storage;
    });
    const roots = [...body.next];
    for (const {
      attr: { each },
    } of outputs)
      if (each !== null && !roots.includes(each) && !body.carries.includes(each)) roots.push(each);
    this.roots = roots;
  }

  #bytes(node: Node): number {
    return sizeOf(node.shape) * this.#element(node);
  }

  #element({ dtype }: Node): number {
    return this.state.elementBytes[dtypeInfo[dtype].id]!;
  }

  /** The index of the slice that a step reads. */
  #index(step: number): number {
    return this.reverse ? this.length - 1 - step : step;
  }

  /** The row of a carry before a step, if all of its values are kept. */
  #rowBefore(step: number): number {
    return this.reverse ? this.length - step : step;
  }

  #hold(buffer: PoolBuffer): PoolBuffer {
    this.#held.push(buffer);
    return buffer;
  }

  #rows(node: Node, count: number): Rows {
    const rows = new Rows(this.state, node, count);
    this.#hold(rows.buffer);
    return rows;
  }

  #bind(node: Node, storage: NodeStorage): void {
    this.#bound.push({ node, before: node.storage });
    node.storage = storage;
  }

  /** Gives the bound nodes of the body the storage that they had before. */
  unbind(): void {
    for (const { node, before } of this.#bound.splice(0).reverse()) node.storage = before;
  }

  /** Releases the memory that only the loop held. */
  end(): void {
    this.unbind();
    for (const buffer of this.#held.splice(0)) buffer.release();
  }

  /** Constants of the body stay where they are in memory. */
  bindConstants(): void {
    const { carries, items, constants } = this.body;
    constants.forEach((node, i) => {
      const storage = this.sources[carries.length + items.length + i]!;
      const address = { buffer: storage.buffer as PoolBuffer, offset: storage.view.offset * this.#element(node) };
      this.places.set(node, () => address);
      this.#bind(node, storage);
    });
  }

  /** Numbers of the body that already are in memory stay there. */
  bindNumbers(nodes: readonly Node[]): void {
    for (const node of nodes) {
      if (node.storage === null || this.places.has(node)) continue;
      const { buffer, view } = node.storage as { readonly buffer: PoolBuffer; readonly view: View };
      buffer.retain();
      const address = { buffer: this.#hold(buffer), offset: view.offset * this.#element(node) };
      this.places.set(node, () => address);
    }
  }

  /** Binds the inputs: a slice per step. Where the engine cannot bind every slice, they are copied to aligned rows. */
  bindItems(): void {
    const align = this.state.engine.caps.bindAlign;
    this.body.items.forEach((node, i) => {
      const { buffer, view } = this.sources[this.body.carries.length + i]!;
      const element = this.#element(node);
      let from = { buffer: buffer as PoolBuffer, offset: view.offset * element };
      let stride = this.#bytes(node);
      if (this.length > 1 && sizeOf(node.shape) > 0) stride = view.strides[0]! * element;
      if (stride % align !== 0 && stride % 4 === 0 && from.offset % 4 === 0) {
        const rows = this.#rows(node, this.length);
        for (let t = 0; t < this.length; t++)
          this.#copy({ buffer: from.buffer, offset: from.offset + t * stride }, rows.row(t), this.#bytes(node));
        from = { buffer: rows.buffer, offset: 0 };
        stride = rows.pitch;
      } else if (stride % align !== 0) {
        const shape = [this.length, sizeOf(node.shape)];
        stride = Math.ceil(stride / align) * align;
        from = this.#padded(
          { buffer, view: { ...view, strides: rowMajorStrides(shape) } },
          shape,
          node,
          stride / element,
        );
      }
      this.places.set(node, (step) => ({ buffer: from.buffer, offset: from.offset + this.#index(step) * stride }));
      this.#bindSlice(node, (from.offset % align) / element);
    });
    for (const node of this.body.carries) this.#bindSlice(node, 0);
  }

  /** Copies to rows with a pitch, by a kernel, because copy commands move whole words. */
  #padded({ buffer, view }: NodeStorage, shape: Shape, { dtype }: Node, pitch: number): Address {
    const { state } = this;
    buffer.retain();
    const leaf = bufferNode({ buffer, view }, shape, dtype);
    const padded = record(
      'pad',
      [leaf],
      { low: [0, 0], high: [0, pitch - shape[1]!], value: 0 },
      [shape[0]!, pitch],
      dtype,
    );
    retain(padded);
    try {
      if (run(state, [padded], { ...state.partial, keep: never }) !== true) throw this.#late();
      const { storage } = padded;
      storage!.buffer.retain();
      return { buffer: this.#hold(storage!.buffer as PoolBuffer), offset: 0 };
    } finally {
      release(padded);
    }
  }

  #late(): UnsupportedError {
    return new UnsupportedError(
      'scan',
      'a step needs code that is on its way; run it once more, or import the engine without /late',
    );
  }

  #bindSlice(node: Node, offset: number): void {
    this.#bind(node, { buffer: standIn(this.state), view: { strides: rowMajorStrides(node.shape), offset } });
  }

  /** Allocates memory for carries and results, and initialises the carries. */
  allocate(): void {
    const { state, body, length, outputs, roots } = this;
    const { carries, next } = body;
    const { arena } = state.engine.caps;
    carries.forEach((node, i) => {
      const kept = outputs.some(({ attr: { each } }) => each !== null && (each === node || each === next[i]));
      const all = kept ? this.#rows(node, length + 1) : null;
      // Without arenas a kernel cannot read one row of a buffer and write another.
      const pair = all !== null && arena ? null : ([this.#rows(node, 1), this.#rows(node, 1)] as const);
      this.#all.push(all);
      this.#pairs.push(pair);
      const at: Place = (step) => (pair === null ? all!.row(this.#rowBefore(step)) : pair[step & 1]!.row(0));
      this.places.set(node, at);
      const targets: Place[] = [(step) => at(step + 1)];
      const { buffer, view } = this.sources[i]!;
      const element = this.#element(node);
      let start: Address = { buffer: buffer as PoolBuffer, offset: view.offset * element };
      if (start.offset % 4 !== 0) {
        const flat = { buffer, view: { strides: [0, 1], offset: view.offset } };
        start = this.#padded(flat, [1, sizeOf(node.shape)], node, sizeOf(node.shape) + 1);
      }
      this.#copy(start, at(0), this.#bytes(node));
      if (all !== null && pair !== null) {
        this.#copy(start, all.row(this.#rowBefore(0)), this.#bytes(node));
        targets.push((step) => all.row(this.#rowBefore(step + 1)));
      }
      this.targets.push(targets);
    });
    for (const node of roots.slice(carries.length)) {
      const rows = this.#rows(node, length);
      this.#stacks.set(node, rows);
      this.targets.push([(step) => rows.row(this.#index(step))]);
    }
  }

  /** The value of an output, with a reference count. */
  storageOf({ attr: { last, each } }: Node<'loopOutput'>): NodeStorage {
    const { body, length, reverse } = this;
    if (each === null) return this.#all[last]?.one(this.#rowBefore(length)) ?? this.#pairs[last]![length & 1]!.one(0);
    const before = body.carries.indexOf(each);
    if (before >= 0) return this.#all[before]!.all(reverse ? 1 : 0);
    const after = body.next.indexOf(each);
    return after >= 0 ? this.#all[after]!.all(reverse ? 0 : 1) : this.#stacks.get(each)!.all(0);
  }

  #copy(from: Address, to: Address, size: number): void {
    if (size === 0) return;
    // Rows begin and blocks end at whole words.
    const bytes = Math.ceil(size / 4) * 4;
    const whole = from.offset % 4 === 0 && to.offset % 4 === 0 ? bytes : size;
    this.commands.push({
      kind: 'copy',
      from: { buffer: from.buffer.memory, offset: from.offset, bytes: whole },
      to: { buffer: to.buffer.memory, offset: to.offset, bytes: whole },
    });
  }

  submit(): void {
    const { commands, state } = this;
    if (commands.length === 0) return;
    const batch = commands.splice(0);
    try {
      runs.submit(state.engine, batch);
    } catch (error) {
      throw unstarted(error, state.engine, batch, false);
    }
    state.inFlight++;
  }

  /** Runs all steps by the plan of one. `local` are the nodes of its captured graph. */
  steps(plan: Plan, local: readonly Node[]): void {
    const { state, roots, targets, places, commands, length } = this;
    // A plan writes each result to its first target. Other targets are copied from there, or from what the result is a view of.
    const written: (Place | null)[] = plan.buffers.map(() => null);
    const copies: { readonly from: Place; readonly to: Place; readonly bytes: number }[] = [];
    roots.forEach((root, i) => {
      const { leaf, at, view } = plan.outputs[i]!;
      let rest = targets[i]!;
      let from: Place;
      if (leaf) {
        const base = places.get(local[at]!)!;
        const shift = view.offset * this.#element(root);
        from = (step) => {
          const { buffer, offset } = base(step);
          return { buffer, offset: offset + shift };
        };
      } else {
        if (written[at] === null) {
          written[at] = rest[0]!;
          rest = rest.slice(1);
        }
        from = written[at]!;
      }
      for (const to of rest) copies.push({ from, to, bytes: this.#bytes(root) });
    });
    const blocks = plan.blocks.map(({ bytes, sizeClass }) => this.#hold(state.pool.alloc(bytes, sizeClass)));
    const values = plan.dispatches.map(({ scalars }) =>
      scalars.map((at) => (at < 0 ? plan.sizes[-1 - at]! : (local[at]!.attr as Attrs['scalar']).value)),
    );
    for (let step = 0; step < length; step++) {
      for (const [d, { kernel, bindings, groups }] of plan.dispatches.entries()) {
        const bound = bindings.map(({ kind, at, offset, bytes }): Binding => {
          if (kind === 'leaf') {
            const address = places.get(local[at]!)!(step);
            return { buffer: address.buffer.memory, offset: address.offset - offset, bytes };
          }
          const place = written[at];
          if (place == null) return { buffer: blocks[at - written.length]!.memory, offset, bytes };
          const address = place(step);
          return { buffer: address.buffer.memory, offset: address.offset + offset, bytes };
        });
        commands.push({ kind: 'dispatch', kernel, bindings: bound, scalars: values[d]!, groups });
      }
      for (const { from, to, bytes } of copies) this.#copy(from(step), to(step), bytes);
      if (commands.length >= mostCommands) this.submit();
    }
    state.kernels += plan.dispatches.length * length;
    this.submit();
  }

  /** Runs all steps of a body with loops in it: each step is recorded again for its slices, and is a separate run. */
  stepsInRuns(nodes: readonly Node[]): void {
    const { state, body, roots, targets, places, length } = this;
    const options = { ...state.partial, keep: never };
    this.unbind();
    this.submit();
    const first = body.carries.length + body.items.length;
    for (let step = 0; step < length; step++) {
      const made = new Map<Node, Node>();
      const leaves = [...body.carries, ...body.items, ...body.constants].map((node, i) => {
        const { buffer, offset } = places.get(node)!(step);
        buffer.retain();
        const strides = i < first ? rowMajorStrides(node.shape) : this.sources[i]!.view.strides;
        const view = { strides, offset: offset / this.#element(node) };
        const leaf = bufferNode({ buffer, view }, node.shape, node.dtype);
        retain(leaf);
        made.set(node, leaf);
        return leaf;
      });
      for (const node of nodes) if (!made.has(node)) made.set(node, copyWith(node, made));
      const results = roots.map((root) => {
        const value = made.get(root) ?? root;
        const result = record('contiguous', [value], null, value.shape, value.dtype);
        retain(result);
        return result;
      });
      try {
        if (run(state, results, options) !== true) throw this.#late();
        results.forEach((result, i) => {
          const { buffer, view } = result.storage!;
          const from = { buffer: buffer as PoolBuffer, offset: view.offset * this.#element(result) };
          for (const to of targets[i]!) this.#copy(from, to(step), this.#bytes(result));
        });
        this.submit();
      } finally {
        for (const node of [...results, ...leaves]) release(node);
      }
    }
  }
}

/** Copies a node of a body for other sources; a nested loop gets a new body, with new outputs. */
function copyWith(node: Node, made: ReadonlyMap<Node, Node>): Node {
  const src = node.src.map((source) => made.get(source) ?? source);
  if (isOp(node, 'loop')) return makeAgain(node, src, { ...node.attr, body: new LoopBody(node.attr.body) });
  const result = makeAgain(node, src, node.attr);
  if (isOp(result, 'loopOutput')) (src[0] as Loop).attr.body.outputs.push(result);
  return result;
}

/** Runs the steps of a loop, and hands the results to the outputs that have users. Not null: it must wait, and nothing was done. */
export function runLoop(state: EngineState, loop: Loop, patience: Patience | undefined): Promise<void> | null {
  const outputs = loop.attr.body.outputs.filter(
    ({ storage, edges }) => storage === null && (edges === 'uses' || edges === 'handles'),
  );
  if (outputs.length === 0) return null;
  const { engine } = state;
  const { captured } = runs;
  const steps = new LoopRun(state, loop, outputs);
  try {
    steps.bindConstants();
    steps.bindItems();
    const wanted = steps.roots.map((node) => record('contiguous', [node], null, node.shape, node.dtype));
    if (!captured.collect(wanted, { ...state.partial, keep: never })) {
      throw new UnsupportedError(
        'scan',
        `the body computes in a dtype that engine '${engine.name}' does not hold; it holds ${[...engine.caps.dtypes].join(', ')}: cast in the body`,
      );
    }
    const nodes = captured.nodes.slice(0, captured.count) as Node[];
    const plan = captured.key.looped ? null : planOf(state, captured);
    captured.key.looped = false;
    if (plan !== null && patience === 'kernels' && engine.compiling !== undefined) {
      const compiled = engine.compiling(plan.dispatches.map(({ kernel }) => kernel));
      if (compiled !== null) return compiled;
    }
    if (plan !== null) graph.observer?.plan(plan, captured);
    captured.clear();
    steps.allocate();
    steps.bindNumbers(nodes);
    if (plan !== null) steps.steps(plan, nodes);
    else steps.stepsInRuns(nodes);
    const storages = outputs.map((output) => steps.storageOf(output));
    steps.unbind();
    for (const [i, output] of outputs.entries()) realise(output, storages[i]!);
    return null;
  } finally {
    captured.clear();
    steps.end();
  }
}
