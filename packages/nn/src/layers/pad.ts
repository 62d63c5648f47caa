/** Padding layers: elements put around the spatial axes, constant or taken from the inside. They have no parameters. */
import { pad, type PadOptions, type Tensor } from '@polygrad/core/functions';
import { checkFits, checkInteger, checkNumber, NnError } from '../errors.ts';
import { Module } from '../module/module.ts';

/**
 * Widths for the spatial axes as in PyTorch: one number for all ends, or two for each axis, the last axis first. That is left, right, top, bottom,
 * front, back. Negative widths cut.
 */
export type PaddingWidths = number | readonly number[];

/** What all of them are: widths, and what is put there. */
abstract class Padding extends Module {
  readonly padding: PaddingWidths;
  readonly #op: string;
  readonly #pairs: readonly (readonly [number, number])[];
  readonly #options: PadOptions;

  constructor(op: string, rank: number, padding: PaddingWidths, options: PadOptions) {
    super();
    const isList = Array.isArray(padding);
    checkFits(op, 'padding', padding, !isList || padding.length === 2 * rank, `a number, or ${2 * rank} of them`);
    const widths: readonly number[] = isList ? padding : new Array<number>(2 * rank).fill(padding as number);
    for (const width of widths) checkInteger(op, 'padding', width, Number.MIN_SAFE_INTEGER);
    this.padding = padding;
    this.#op = op;
    this.#options = options;
    const pairs = Array.from({ length: rank }, (_, i): [number, number] => [widths[2 * i]!, widths[2 * i + 1]!]);
    this.#pairs = pairs.reverse();
  }

  forward(x: Tensor): Tensor {
    const lead = x.ndim - this.#pairs.length;
    // Without a batch, or without channels, too.
    if (lead < 0 || lead > 2)
      throw new NnError(
        this.#op,
        `x has shape [${x.shape.join(', ')}]; it must have ${this.#pairs.length} spatial axes behind batch and channels`,
        ['x'],
      );
    return pad(x, [...new Array<[number, number]>(lead).fill([0, 0]), ...this.#pairs], this.#options);
  }
}

/**
 * Zeros around lines. Source: PyTorch `nn.ZeroPad1d`.
 *
 * @example
 * new ZeroPad1d([1, 2]).forward(zeros([1, 2, 4])).shape; // [1, 2, 7]
 */
export class ZeroPad1d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ZeroPad1d', 1, padding, { mode: 'constant' });
  }
}

/**
 * Zeros around images. Source: PyTorch `nn.ZeroPad2d`.
 *
 * @example
 * new ZeroPad2d([1, 2, 0, 1]).forward(zeros([1, 2, 4, 4])).shape; // [1, 2, 5, 7]
 */
export class ZeroPad2d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ZeroPad2d', 2, padding, { mode: 'constant' });
  }
}

/**
 * Zeros around volumes. Source: PyTorch `nn.ZeroPad3d`.
 *
 * @example
 * new ZeroPad3d(1).forward(zeros([1, 2, 4, 4, 4])).shape; // [1, 2, 6, 6, 6]
 */
export class ZeroPad3d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ZeroPad3d', 3, padding, { mode: 'constant' });
  }
}

/**
 * A value around lines. Source: PyTorch `nn.ConstantPad1d`.
 *
 * @example
 * new ConstantPad1d([1, 2], 9).forward(zeros([1, 2, 4])).shape; // [1, 2, 7]
 */
export class ConstantPad1d extends Padding {
  readonly value: number;

  constructor(padding: PaddingWidths, value: number) {
    checkNumber('ConstantPad1d', 'value', value);
    super('ConstantPad1d', 1, padding, { value });
    this.value = value;
  }
}

/**
 * A value around images. Source: PyTorch `nn.ConstantPad2d`.
 *
 * @example
 * new ConstantPad2d([1, 2, 0, 1], 9).forward(zeros([1, 2, 4, 4])).shape; // [1, 2, 5, 7]
 */
export class ConstantPad2d extends Padding {
  readonly value: number;

  constructor(padding: PaddingWidths, value: number) {
    checkNumber('ConstantPad2d', 'value', value);
    super('ConstantPad2d', 2, padding, { value });
    this.value = value;
  }
}

/**
 * A value around volumes. Source: PyTorch `nn.ConstantPad3d`.
 *
 * @example
 * new ConstantPad3d(1, 9).forward(zeros([1, 2, 4, 4, 4])).shape; // [1, 2, 6, 6, 6]
 */
export class ConstantPad3d extends Padding {
  readonly value: number;

  constructor(padding: PaddingWidths, value: number) {
    checkNumber('ConstantPad3d', 'value', value);
    super('ConstantPad3d', 3, padding, { value });
    this.value = value;
  }
}

/**
 * The inside, mirrored without the edge, around lines. Source: PyTorch `nn.ReflectionPad1d`.
 *
 * @example
 * new ReflectionPad1d([1, 2]).forward(zeros([1, 2, 4])).shape; // [1, 2, 7]
 */
export class ReflectionPad1d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ReflectionPad1d', 1, padding, { mode: 'reflect' });
  }
}

/**
 * The inside, mirrored without the edge, around images. Source: PyTorch `nn.ReflectionPad2d`.
 *
 * @example
 * new ReflectionPad2d([1, 2, 0, 1]).forward(zeros([1, 2, 4, 4])).shape; // [1, 2, 5, 7]
 */
export class ReflectionPad2d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ReflectionPad2d', 2, padding, { mode: 'reflect' });
  }
}

/**
 * The inside, mirrored without the edge, around volumes. Source: PyTorch `nn.ReflectionPad3d`.
 *
 * @example
 * new ReflectionPad3d(1).forward(zeros([1, 2, 4, 4, 4])).shape; // [1, 2, 6, 6, 6]
 */
export class ReflectionPad3d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ReflectionPad3d', 3, padding, { mode: 'reflect' });
  }
}

/**
 * The edge, repeated, around lines. Source: PyTorch `nn.ReplicationPad1d`.
 *
 * @example
 * new ReplicationPad1d([1, 2]).forward(zeros([1, 2, 4])).shape; // [1, 2, 7]
 */
export class ReplicationPad1d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ReplicationPad1d', 1, padding, { mode: 'replicate' });
  }
}

/**
 * The edge, repeated, around images. Source: PyTorch `nn.ReplicationPad2d`.
 *
 * @example
 * new ReplicationPad2d([1, 2, 0, 1]).forward(zeros([1, 2, 4, 4])).shape; // [1, 2, 5, 7]
 */
export class ReplicationPad2d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ReplicationPad2d', 2, padding, { mode: 'replicate' });
  }
}

/**
 * The edge, repeated, around volumes. Source: PyTorch `nn.ReplicationPad3d`.
 *
 * @example
 * new ReplicationPad3d(1).forward(zeros([1, 2, 4, 4, 4])).shape; // [1, 2, 6, 6, 6]
 */
export class ReplicationPad3d extends Padding {
  constructor(padding: PaddingWidths) {
    super('ReplicationPad3d', 3, padding, { mode: 'replicate' });
  }
}

/**
 * The other end around lines. Source: PyTorch `nn.CircularPad1d`.
 *
 * @example
 * new CircularPad1d([1, 2]).forward(zeros([1, 2, 4])).shape; // [1, 2, 7]
 */
export class CircularPad1d extends Padding {
  constructor(padding: PaddingWidths) {
    super('CircularPad1d', 1, padding, { mode: 'circular' });
  }
}

/**
 * The other end around images. Source: PyTorch `nn.CircularPad2d`.
 *
 * @example
 * new CircularPad2d([1, 2, 0, 1]).forward(zeros([1, 2, 4, 4])).shape; // [1, 2, 5, 7]
 */
export class CircularPad2d extends Padding {
  constructor(padding: PaddingWidths) {
    super('CircularPad2d', 2, padding, { mode: 'circular' });
  }
}

/**
 * The other end around volumes. Source: PyTorch `nn.CircularPad3d`.
 *
 * @example
 * new CircularPad3d(1).forward(zeros([1, 2, 4, 4, 4])).shape; // [1, 2, 6, 6, 6]
 */
export class CircularPad3d extends Padding {
  constructor(padding: PaddingWidths) {
    super('CircularPad3d', 3, padding, { mode: 'circular' });
  }
}
