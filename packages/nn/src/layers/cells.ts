/** RNNCell, LSTMCell and GRUCell: one step of a recurrent layer, for loops of one's own. */
import { type DType, relu, tanh, type Tensor, zeros } from '@polygrad/core/functions';
import { checkFits, checkInteger, checkOptions, checkTensor, NnError } from '../errors.ts';
import { uniformInit } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';
import { gruStep, lstmStep, projected } from './recurrent.ts';

/** Options that recurrent cells share. */
export interface CellOptions {
  /** Whether there are biases (default true). */
  readonly bias?: boolean;
  readonly dtype?: DType;
}

/** Parameters under PyTorch's names, and the checks of inputs. */
abstract class Cell<State, Result> extends Module<[x: Tensor, state?: State], Result> {
  /** Shape [gates * hidden, inputs]. */
  readonly weight_ih: Tensor;
  /** Shape [gates * hidden, hidden]. */
  readonly weight_hh: Tensor;
  /** Shape [gates * hidden], or null without biases. */
  readonly bias_ih: Tensor | null;
  readonly bias_hh: Tensor | null;
  readonly inputs: number;
  readonly hidden: number;
  readonly #name: string;

  constructor(
    name: string,
    gates: number,
    inputs: number,
    hidden: number,
    { bias = true, dtype = 'float32' }: CellOptions,
  ) {
    super();
    checkInteger(name, 'inputs', inputs, 1);
    checkInteger(name, 'hidden', hidden, 1);
    const init = uniformInit(-1 / Math.sqrt(hidden), 1 / Math.sqrt(hidden));
    const rows = gates * hidden;
    this.weight_ih = parameter(init([rows, inputs], dtype));
    this.weight_hh = parameter(init([rows, hidden], dtype));
    this.bias_ih = bias ? parameter(init([rows], dtype)) : null;
    this.bias_hh = bias ? parameter(init([rows], dtype)) : null;
    this.inputs = inputs;
    this.hidden = hidden;
    this.#name = name;
  }

  /** The part of a step that depends on its input, and the weights of the other. */
  protected parts(x: Tensor): [input: Tensor, weights: Parameters<typeof lstmStep>[2]] {
    checkTensor(this.#name, 'x', x);
    if (x.ndim !== 2 || x.shape[1] !== this.inputs)
      throw new NnError(this.#name, `x has shape [${x.shape.join(', ')}]; it must be [N, ${this.inputs}]`, ['x']);
    const weights = {
      inputs: this.weight_ih,
      hidden: this.weight_hh,
      inputBias: this.bias_ih,
      hiddenBias: this.bias_hh,
    };
    return [projected(x, this.weight_ih, this.bias_ih), weights];
  }

  /** A state as it was given, or zeros. */
  protected stateFor(x: Tensor, given: Tensor | undefined): Tensor {
    const shape = [x.shape[0]!, this.hidden];
    if (given === undefined) return zeros(shape, { dtype: this.weight_hh.dtype });
    checkTensor(this.#name, 'state', given);
    if (given.shape.join() !== shape.join())
      throw new NnError(this.#name, `a state has shape [${given.shape.join(', ')}]; it must be [${shape.join(', ')}]`, [
        'state',
      ]);
    return given;
  }
}

/** Options of `RNNCell`. */
export interface RNNCellOptions extends CellOptions {
  /** What a step applies: 'tanh' (default) or 'relu'. */
  readonly nonlinearity?: 'tanh' | 'relu';
}

/**
 * One step of the plain recurrent layer: `h = tanh(W x + b + U h + c)`, or relu. Source: PyTorch `nn.RNNCell`, whose weights it can load.
 *
 * @example
 * const cell = new RNNCell(8, 16);
 * cell.forward(zeros([4, 8])).shape; // [4, 16]
 */
export class RNNCell extends Cell<Tensor, Tensor> {
  readonly nonlinearity: 'tanh' | 'relu';

  /**
   * @param inputs size of the last axis of the input
   * @param hidden size of the state
   */
  constructor(inputs: number, hidden: number, options: RNNCellOptions = {}) {
    checkOptions('RNNCell', options, 'bias? dtype nonlinearity');
    super('RNNCell', 1, inputs, hidden, options);
    const { nonlinearity = 'tanh' } = options;
    const isKnown = nonlinearity === 'tanh' || nonlinearity === 'relu';
    checkFits('RNNCell', 'nonlinearity', nonlinearity, isKnown, "'tanh' or 'relu'");
    this.nonlinearity = nonlinearity;
  }

  /**
   * @param x shape [N, inputs]
   * @param state the hidden state before, [N, hidden] (default: zeros)
   * @returns the hidden state after, [N, hidden]
   */
  forward(x: Tensor, state?: Tensor): Tensor {
    const [input, weights] = this.parts(x);
    const sum = input.add(projected(this.stateFor(x, state), weights.hidden, weights.hiddenBias));
    return this.nonlinearity === 'tanh' ? tanh(sum) : relu(sum);
  }
}

/** Where an LSTMCell is: hidden state and cell state, each [N, hidden]. */
export interface LSTMCellState {
  readonly hidden: Tensor;
  readonly cell: Tensor;
}

/**
 * One step of an LSTM. Source: PyTorch `nn.LSTMCell`, whose weights it can load.
 *
 * @example
 * const cell = new LSTMCell(8, 16);
 * const state = cell.forward(zeros([4, 8]));
 * cell.forward(ones([4, 8]), state).hidden.shape; // [4, 16]
 */
export class LSTMCell extends Cell<LSTMCellState, LSTMCellState> {
  /**
   * @param inputs size of the last axis of the input
   * @param hidden size of the state
   */
  constructor(inputs: number, hidden: number, options: CellOptions = {}) {
    checkOptions('LSTMCell', options, 'bias? dtype');
    super('LSTMCell', 4, inputs, hidden, options);
  }

  /**
   * @param x shape [N, inputs]
   * @param state the states before (default: zeros)
   * @returns the states after
   */
  forward(x: Tensor, state?: LSTMCellState): LSTMCellState {
    const [input, weights] = this.parts(x);
    const before = [this.stateFor(x, state?.hidden), this.stateFor(x, state?.cell)];
    const [hidden, cell] = lstmStep(input, before, weights) as [Tensor, Tensor];
    return { hidden, cell };
  }
}

/**
 * One step of a GRU. Source: PyTorch `nn.GRUCell`, whose weights it can load.
 *
 * @example
 * const cell = new GRUCell(8, 16);
 * cell.forward(zeros([4, 8])).shape; // [4, 16]
 */
export class GRUCell extends Cell<Tensor, Tensor> {
  /**
   * @param inputs size of the last axis of the input
   * @param hidden size of the state
   */
  constructor(inputs: number, hidden: number, options: CellOptions = {}) {
    checkOptions('GRUCell', options, 'bias? dtype');
    super('GRUCell', 3, inputs, hidden, options);
  }

  /**
   * @param x shape [N, inputs]
   * @param state the hidden state before, [N, hidden] (default: zeros)
   * @returns the hidden state after, [N, hidden]
   */
  forward(x: Tensor, state?: Tensor): Tensor {
    const [input, weights] = this.parts(x);
    return gruStep(input, [this.stateFor(x, state)], weights)[0]!;
  }
}
