/**
 * LSTM, GRU and RNN: layers that go through a sequence step by step and carry a state along.
 *
 * The loop over the steps is a `scan`: one step is recorded and planned, whatever the length of the sequence, but for the shortest. Only what depends on the state is
 * computed in the loop: the products with the inputs are one product over all steps.
 */
import {
  arange,
  chunk,
  concat,
  type DType,
  dropout,
  less,
  matmul,
  relu,
  reshape,
  scan,
  select,
  sigmoid,
  stack,
  tanh,
  type Tensor,
  tensor,
  transpose,
  where,
  zeros,
} from '@polygrad/core/functions';
import { checkFits, checkFraction, checkInteger, checkOptions, checkTensor, NnError } from '../errors.ts';
import { uniformInit } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';

/** Options that `LSTM`, `GRU` and `RNN` share. */
export interface RecurrentOptions {
  /** Layers on top of each other (default 1). */
  readonly numLayers?: number;
  /** Go through the sequence from its end as well; results of both directions lie side by side (default false). */
  readonly bidirectional?: boolean;
  /** Whether there are biases (default true). */
  readonly bias?: boolean;
  /** Share of the elements between two layers that become zero in training (default 0). */
  readonly dropout?: number;
  readonly dtype?: DType;
}

/** What a call says of its sequences. */
export interface SequenceOptions {
  /**
   * How many steps of each sequence count, an integer from 0 to T each: a list, or an int32 tensor of shape [N]. What is behind them is padding. It
   * changes nothing: outputs there are zeros, states are those after the last step that counts, and the backward direction begins there. Default: all.
   */
  readonly lengths?: Tensor | readonly number[];
}

/** Parameters of one layer in one direction. */
export interface CellWeights {
  readonly inputs: Tensor;
  readonly hidden: Tensor;
  readonly inputBias: Tensor | null;
  readonly hiddenBias: Tensor | null;
  /** [projection, hidden], where the hidden state of an LSTM is projected. */
  readonly projection?: Tensor | null;
}

/** What one step makes of the part that depends on its input, and of the state before it. */
export type Step = (input: Tensor, state: readonly Tensor[], cell: CellWeights) => readonly Tensor[];

/** `x W^T + b`. */
export function projected(x: Tensor, weight: Tensor, bias: Tensor | null): Tensor {
  const product = matmul(x, transpose(weight));
  return bias === null ? product : product.add(bias);
}

/** Most layers: each is made, and recorded for every step. */
const mostLayers = 1024;

/** What LSTM, GRU and RNN have in common. */
abstract class Recurrent<State, Result> extends Module<[x: Tensor, state?: State, options?: SequenceOptions], Result> {
  readonly inputs: number;
  readonly hidden: number;
  /** Size of the hidden state: `hidden`, or what an LSTM projects it to. */
  readonly width: number;
  readonly layers: number;
  readonly bidirectional: boolean;
  readonly dropout: number;
  /** Layer by layer, the backward direction after the forward one. */
  readonly #cells: readonly CellWeights[];
  readonly #name: string;

  constructor(
    name: string,
    gates: number,
    inputs: number,
    hidden: number,
    options: RecurrentOptions,
    projection: number = 0,
  ) {
    super();
    checkOptions(name, options, 'numLayers bidirectional? bias? dropout dtype');
    const {
      numLayers: layers = 1,
      bidirectional = false,
      bias = true,
      dropout: share = 0,
      dtype = 'float32',
    } = options;
    checkInteger(name, 'inputs', inputs, 1);
    checkInteger(name, 'hidden', hidden, 1);
    checkInteger(name, 'numLayers', layers, 1, mostLayers);
    checkFraction(name, 'dropout', share);
    this.inputs = inputs;
    this.hidden = hidden;
    this.width = projection || hidden;
    this.layers = layers;
    this.bidirectional = bidirectional;
    this.dropout = share;
    this.#name = name;
    const init = uniformInit(-1 / Math.sqrt(hidden), 1 / Math.sqrt(hidden));
    const make = (label: string, shape: readonly number[]): Tensor => {
      const value = parameter(init(shape, dtype));
      Object.defineProperty(this, label, { value, enumerable: true });
      return value;
    };
    const directions = bidirectional ? ['', '_reverse'] : [''];
    const rows = gates * hidden;
    this.#cells = Array.from({ length: layers }, (_, layer) =>
      directions.map((direction): CellWeights => {
        const place = `l${layer}${direction}`;
        const width = layer === 0 ? inputs : this.width * directions.length;
        return {
          inputs: make(`weight_ih_${place}`, [rows, width]),
          hidden: make(`weight_hh_${place}`, [rows, this.width]),
          inputBias: bias ? make(`bias_ih_${place}`, [rows]) : null,
          hiddenBias: bias ? make(`bias_hh_${place}`, [rows]) : null,
          projection: projection > 0 ? make(`weight_hr_${place}`, [projection, hidden]) : null,
        };
      }),
    ).flat();
  }

  /**
   * Through all layers.
   *
   * @param state per kind of state, [layers * directions, N, hidden]
   * @returns the last layer's hidden states, and the last state of each kind
   */
  protected run(
    x: Tensor,
    state: readonly Tensor[] | null,
    kinds: number,
    step: Step,
    options: SequenceOptions,
  ): [Tensor, Tensor[]] {
    checkOptions(this.#name, options, 'lengths');
    checkTensor(this.#name, 'x', x);
    const { shape } = x;
    if (shape.length !== 3 || shape[1] === 0 || shape[2] !== this.inputs)
      throw new NnError(
        this.#name,
        `x has shape [${shape.join(', ')}]; it must be [N, steps, ${this.inputs}] with at least one step`,
        ['x'],
      );
    // Of the hidden state, which may be projected, and of what else an LSTM has.
    const sizeOf = (kind: number): number[] => [shape[0]!, kind === 0 ? this.width : this.hidden];
    for (const [kind, given] of (state ?? []).entries()) {
      checkTensor(this.#name, 'state', given);
      const whole = [this.#cells.length, ...sizeOf(kind)];
      if (given.shape.join() === whole.join()) continue;
      throw new NnError(
        this.#name,
        `a state has shape [${given.shape.join(', ')}]; it must be [${whole.join(', ')}]: layers times directions, N, hidden`,
        ['state'],
      );
    }
    const counts = options.lengths === undefined ? null : runningSteps(this.#name, options.lengths, shape);
    const directions = this.bidirectional ? 2 : 1;
    const last: (readonly Tensor[])[] = [];
    let sequence = transpose(x, 0, 1);
    for (let layer = 0; layer < this.layers; layer++) {
      if (layer > 0 && this.training && this.dropout > 0)
        sequence = dropout(sequence, { p: this.dropout, training: true });
      const results: Tensor[] = [];
      for (let direction = 0; direction < directions; direction++) {
        const at = layer * directions + direction;
        const cell = this.#cells[at]!;
        const start = Array.from({ length: kinds }, (_, kind) =>
          state === null ? zeros(sizeOf(kind), { dtype: cell.hidden.dtype }) : select(state[kind]!, 0, at),
        );
        const [output, end] = through(sequence, start, cell, direction === 1, step, counts);
        results.push(output);
        last.push(end);
      }
      sequence = results.length === 1 ? results[0]! : concat(results, 2);
    }
    return [
      transpose(sequence, 0, 1),
      Array.from({ length: kinds }, (_, kind) => stack(last.map((end) => end[kind]!))),
    ];
  }
}

/** Which steps of which sequences count, [T, N, 1]. */
function runningSteps(name: string, lengths: Tensor | readonly number[], shape: readonly number[]): Tensor {
  const [batch, steps] = shape as readonly [number, number];
  const refuse = (found: string): never => {
    throw new NnError(name, `lengths are ${found}; they must be int32 [${batch}]: one for each sequence`, ['lengths']);
  };
  let given: Tensor;
  if (isList(lengths)) {
    if (lengths.length !== batch) refuse(`a list of ${lengths.length}`);
    for (let i = 0; i < batch; i++) checkInteger(name, `lengths[${i}]`, lengths[i]!, 0, steps);
    given = tensor([...lengths], { dtype: 'int32' });
  } else {
    checkTensor(name, 'lengths', lengths);
    given = lengths as Tensor;
    if (given.shape.join() !== String(batch) || given.dtype !== 'int32')
      refuse(`${given.dtype} [${given.shape.join(', ')}]`);
  }
  return less(reshape(arange(steps, { dtype: 'int32' }), [steps, 1, 1]), reshape(given, [1, batch, 1]));
}

function isList(value: unknown): value is readonly number[] {
  return Array.isArray(value);
}

/**
 * Sequences up to so many steps are recorded step by step: a step of training then takes half as long, measured with 64 hidden units. From a dozen
 * steps on the loop is faster, and every length here has a plan of its own, as few as they are.
 */
const mostRecorded = 4;

/** One layer in one direction, over [T, N, inputs]. */
function through(
  x: Tensor,
  start: readonly Tensor[],
  cell: CellWeights,
  backward: boolean,
  step: Step,
  counts: Tensor | null,
): [Tensor, readonly Tensor[]] {
  const inputs = projected(x, cell.inputs, cell.inputBias);
  const body = (state: readonly Tensor[], [input, running]: readonly Tensor[]): [readonly Tensor[], Tensor] => {
    const next = step(input as Tensor, state, cell);
    if (running === undefined) return [next, next[0]!];
    const kept = next.map((t, i) => where(running, t, state[i]!));
    return [kept, where(running, next[0]!, 0)];
  };
  const sliced = counts === null ? [inputs] : [inputs, counts];
  const steps = x.shape[0]!;
  if (steps > mostRecorded) {
    const [end, output] = scan(body, start, sliced as readonly Tensor[], { reverse: backward });
    return [output, end];
  }
  const outputs = new Array<Tensor>(steps);
  let state = start;
  for (let i = 0; i < steps; i++) {
    const t = backward ? steps - 1 - i : i;
    const slices = sliced.map((all) => select(all, 0, t));
    [state, outputs[t]] = body(state, slices);
  }
  return [stack(outputs), state];
}

/** What an LSTM is made with besides. */
export interface LSTMOptions extends RecurrentOptions {
  /** Hidden states are projected to this many numbers (default 0: they are not). Source: Sak et al. (2014); PyTorch's `proj_size`. */
  readonly projSize?: number;
}

/** Where an LSTM is: hidden state and cell state, each [layers * directions, N, hidden]; a projected hidden state is as wide as that. */
export interface LSTMState {
  readonly hidden: Tensor;
  readonly cell: Tensor;
}

/** Result of an LSTM: hidden states of the last layer, [N, T, hidden * directions], and the state after the last step. */
export interface LSTMResult extends LSTMState {
  readonly output: Tensor;
}

/**
 * Long short-term memory. Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000); PyTorch `nn.LSTM` with
 * `batch_first`, whose weights it can load.
 *
 * `i, f, g, o = W x + b + U h + c`, then `cell = sigmoid(f) cell + sigmoid(i) tanh(g)` and `h = sigmoid(o) tanh(cell)`.
 *
 * @example
 * const layer = new LSTM(8, 16, { numLayers: 2 });
 * const { output, hidden } = layer.forward(zeros([4, 10, 8]));
 * output.shape; // [4, 10, 16]
 */
export class LSTM extends Recurrent<LSTMState, LSTMResult> {
  /**
   * @param inputs size of the last axis of the input
   * @param hidden size of the state
   * @throws NnError for a projection that is not smaller than the state
   */
  constructor(inputs: number, hidden: number, options: LSTMOptions = {}) {
    checkOptions('LSTM', options, 'numLayers bidirectional? bias? dropout dtype projSize');
    const { projSize = 0, ...rest } = options;
    checkInteger('LSTM', 'hidden', hidden, 1);
    checkInteger('LSTM', 'projSize', projSize, 0, hidden - 1);
    super('LSTM', 4, inputs, hidden, rest, projSize);
  }

  /**
   * @param x shape [N, T, inputs]
   * @param state where to start (default: zeros)
   * @param options lengths of padded sequences
   * @throws NnError for other shapes
   */
  forward(x: Tensor, state?: LSTMState, options: SequenceOptions = {}): LSTMResult {
    const [output, [hidden, cell]] = this.run(x, state ? [state.hidden, state.cell] : null, 2, lstmStep, options);
    return { output, hidden: hidden as Tensor, cell: cell as Tensor };
  }
}

export function lstmStep(input: Tensor, state: readonly Tensor[], cell: CellWeights): readonly Tensor[] {
  const [h, c] = state as [Tensor, Tensor];
  const [i, f, g, o] = chunk(input.add(projected(h, cell.hidden, cell.hiddenBias)), 4, { axis: 1 }) as [
    Tensor,
    Tensor,
    Tensor,
    Tensor,
  ];
  const next = sigmoid(f)
    .mul(c)
    .add(sigmoid(i).mul(tanh(g)));
  const output = sigmoid(o).mul(tanh(next));
  return [cell.projection ? projected(output, cell.projection, null) : output, next];
}

/** Where a GRU is: its hidden state, [layers * directions, N, hidden]. */
export interface GRUState {
  readonly hidden: Tensor;
}

/** Result of a GRU: hidden states of the last layer, [N, T, hidden * directions], and the state after the last step. */
export interface GRUResult extends GRUState {
  readonly output: Tensor;
}

/**
 * Gated recurrent unit. Source: Cho et al. (2014), with the reset gate after the product as in PyTorch `nn.GRU` with `batch_first`,
 * whose weights it can load.
 *
 * `r, z = sigmoid(W x + b + U h + c)`, `n = tanh(W x + b + r (U h + c))`, then `h = (1 - z) n + z h`.
 *
 * @example
 * const layer = new GRU(8, 16, { bidirectional: true });
 * layer.forward(zeros([4, 10, 8])).output.shape; // [4, 10, 32]
 */
export class GRU extends Recurrent<GRUState, GRUResult> {
  /**
   * @param inputs size of the last axis of the input
   * @param hidden size of the state
   */
  constructor(inputs: number, hidden: number, options: RecurrentOptions = {}) {
    super('GRU', 3, inputs, hidden, options);
  }

  /**
   * @param x shape [N, T, inputs]
   * @param state where to start (default: zeros)
   * @param options lengths of padded sequences
   * @throws NnError for other shapes
   */
  forward(x: Tensor, state?: GRUState, options: SequenceOptions = {}): GRUResult {
    const [output, [hidden]] = this.run(x, state ? [state.hidden] : null, 1, gruStep, options);
    return { output, hidden: hidden as Tensor };
  }
}

export function gruStep(input: Tensor, [h]: readonly Tensor[], cell: CellWeights): readonly Tensor[] {
  const before = h as Tensor;
  const thirds = (t: Tensor): readonly Tensor[] => chunk(t, 3, { axis: 1 });
  const [ri, zi, ni] = thirds(input) as [Tensor, Tensor, Tensor];
  const [rh, zh, nh] = thirds(projected(before, cell.hidden, cell.hiddenBias)) as [Tensor, Tensor, Tensor];
  const next = tanh(ni.add(sigmoid(ri.add(rh)).mul(nh)));
  return [next.add(sigmoid(zi.add(zh)).mul(before.sub(next)))];
}

/** What an RNN is made with besides. */
export interface RNNOptions extends RecurrentOptions {
  /** What each step applies: 'tanh' (default) or 'relu'. */
  readonly nonlinearity?: 'tanh' | 'relu';
}

/** Where an RNN is: its hidden state, [layers * directions, N, hidden]. */
export interface RNNState {
  readonly hidden: Tensor;
}

/** Result of an RNN: hidden states of the last layer, [N, T, hidden * directions], and the state after the last step. */
export interface RNNResult extends RNNState {
  readonly output: Tensor;
}

/**
 * The plain recurrent layer. Source: Elman (1990); PyTorch `nn.RNN` with `batch_first`, whose weights it can load.
 *
 * `h = tanh(W x + b + U h + c)`, or relu.
 *
 * @example
 * const layer = new RNN(8, 16);
 * const lengths = [10, 3, 7, 1]; // what is behind them is padding
 * layer.forward(zeros([4, 10, 8]), undefined, { lengths }).output.shape; // [4, 10, 16]
 */
export class RNN extends Recurrent<RNNState, RNNResult> {
  readonly nonlinearity: 'tanh' | 'relu';

  /**
   * @param inputs size of the last axis of the input
   * @param hidden size of the state
   * @throws NnError for another activation
   */
  constructor(inputs: number, hidden: number, options: RNNOptions = {}) {
    checkOptions('RNN', options, 'numLayers bidirectional? bias? dropout dtype nonlinearity');
    const { nonlinearity = 'tanh', ...rest } = options;
    super('RNN', 1, inputs, hidden, rest);
    const isKnown = nonlinearity === 'tanh' || nonlinearity === 'relu';
    checkFits('RNN', 'nonlinearity', nonlinearity, isKnown, "'tanh' or 'relu'");
    this.nonlinearity = nonlinearity;
  }

  /**
   * @param x shape [N, T, inputs]
   * @param state where to start (default: zeros)
   * @param options lengths of padded sequences
   * @throws NnError for other shapes
   */
  forward(x: Tensor, state?: RNNState, options: SequenceOptions = {}): RNNResult {
    const act = this.nonlinearity === 'tanh' ? tanh : relu;
    const step: Step = (input, [h], cell) => [act(input.add(projected(h as Tensor, cell.hidden, cell.hiddenBias)))];
    const [output, [hidden]] = this.run(x, state ? [state.hidden] : null, 1, step, options);
    return { output, hidden: hidden as Tensor };
  }
}
