/**
 * Attention, and rotary position embedding.
 *
 * In attention every query takes the mean of the values, weighted by the softmax of its products with the keys. Small score matrices are
 * computed whole, as softmax between two products. Large ones never exist: one kernel keeps its scores on chip (primitives/attention.ts), or
 * attention-blocks.ts goes through them block by block. `formOf` chooses. All forms have derivatives of every order.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { attentionPrimitive } from '../../primitives/attention.ts';
import { cosPrimitive, sinPrimitive } from '../../primitives/elementary.ts';
import { checkList } from '@polygrad/compiler/shape/axes';
import { type DType, isFloat, isSmallFloat, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { broadcastShapes, broadcastsTo } from '@polygrad/compiler/shape/broadcast';
import { nodeOf, uploadNode, wrap } from '../../tensor/handle.ts';
import { floatOperand, floatOperands } from '../../tensor/operand.ts';
import { type RandomKey, resolveKey } from '../../tensor/random-key.ts';
import type { Tensor } from '../../tensor/types.ts';
import {
  alongLast,
  type AttentionOperands,
  type AttentionSettings,
  blockSizes,
  blockwise,
  dropped,
  headsOf,
  maskedScores,
  maskOf,
  onlyAllowed,
  products,
  weighed,
} from './attention-blocks.ts';

/** Options of `scaledDotProductAttention`. */
export interface AttentionOptions {
  /** Which keys a query sees: bool (true takes part), or numbers that are added to the scores. Broadcasts to [..., H, L, S]. */
  readonly mask?: Tensor | null;
  /** Query i sees keys 0 .. i + causalOffset only. Default false. */
  readonly causal?: boolean;
  /** With `causal`: how many keys came before the first query. Default 0. */
  readonly causalOffset?: number;
  /** Factor of the products. Default 1 / sqrt(E). */
  readonly scale?: number;
  /** Probability with which a weight is set to 0 (the others grow to make up for it). Default 0. */
  readonly dropout?: number;
  /** Key of the dropout. Default: the generator's next. */
  readonly key?: RandomKey | number;
  /** Whole score matrices, blocks of them, one kernel without any, or what suits their size. Default 'auto'. */
  readonly form?: 'auto' | 'whole' | 'blocks' | 'kernel';
  /** For blocks: queries and keys in each. Default: by size. */
  readonly blockSize?: readonly [number, number];
}

const op = 'scaledDotProductAttention';

/**
 * With more scores than this, no whole matrix of them is made. For causal attention one kernel skips half of the scores, so it is faster from fewer
 * on. Measured in bench/results/2026-11-28-attention.md.
 */
const mostScores = { all: 1 << 22, causal: 1 << 20 };
/** With fewer queries the scores take less memory than the keys. */
const fewestRows = 16;
/** Elements of a head that one kernel has room for in group memory and registers. */
const widestHead = 128;

/** How attention is computed: as requested, or as suits the sizes; one kernel only if possible. */
function formOf({ form = 'auto' }: AttentionOptions, operands: AttentionOperands, settings: AttentionSettings): Form {
  const { q, v, mask } = operands;
  const [rows, columns] = [q.shape[q.shape.length - 2]!, v.shape[v.shape.length - 2]!];
  const widest = Math.max(q.shape[q.shape.length - 1]!, v.shape[v.shape.length - 1]!);
  // The kernel has no dropout.
  const fits = settings.dropout === null && widest <= widestHead;
  if (form !== 'auto') return form === 'kernel' && !fits ? 'blocks' : form;
  // Blocks give the gradient of a mask of numbers; after the kernel it would take the whole score matrix.
  const suits = fits && (mask === null || mask.dtype === 'bool');
  const most = suits && settings.causal !== null ? mostScores.causal : mostScores.all;
  if (rows < fewestRows || headsOf(operands) * rows * columns <= most) return 'whole';
  return suits ? 'kernel' : 'blocks';
}

type Form = Exclude<NonNullable<AttentionOptions['form']>, 'auto'>;

/**
 * softmax(scale * Q K^T + mask) V. Source: Vaswani et al., "Attention is all you need" (2017); PyTorch `scaled_dot_product_attention`. In blocks
 * and in one kernel: Dao et al., "FlashAttention" (2022); then no score matrix is held, forward or backward. One kernel is for heads of at most 128
 * elements without dropout; blocks stand in for it elsewhere.
 *
 * A query that sees no key gets zeros. In a mask of numbers, those below half of the dtype's lowest (-Infinity among them) hide the key.
 *
 * @param query shape [..., H, L, E] (or [L, E])
 * @param key shape [..., H', S, E], where H' divides H: each head of the keys serves H / H' heads of queries; leading axes broadcast
 * @param value shape [..., H', S, V]
 * @param options mask, causal, causalOffset, scale, dropout and its key, form, blockSize
 * @returns shape [..., H, L, V]
 * @throws ShapeError where sizes do not fit; ArgumentError for options out of range
 *
 * @example
 * const x = tensor([[1, 0], [0, 1]]);
 * scaledDotProductAttention(x, x, x, { causal: true }); // about [[1, 0], [0.33024, 0.66976]]
 */
export function scaledDotProductAttention(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  options: AttentionOptions = {},
): Tensor {
  checkNames('scaledDotProductAttention', options, 'mask causal? causalOffset# scale# dropout# key form blockSize');
  return compose(op, () => {
    const { narrow, operands, outShape, dtype } = readOperands(query, key, value, options.mask);
    const { q, k, v } = operands;
    const settings = readSettings(options, q, options.mask ? nodeOf(options.mask).dtype : 'bool');
    if (q.shape.includes(0) || k.shape.includes(0) || v.shape.includes(0)) return wrap(p.constant(0, dtype, outShape));
    const heads = headsOf(operands);
    const [rows, columns] = [q.shape[q.shape.length - 2]!, k.shape[k.shape.length - 2]!];
    const compute: Readonly<Record<Form, () => Node>> = {
      whole: () => whole(operands, settings),
      blocks: () => blockwise(operands, { ...settings, size: options.blockSize ?? blockSizes(heads, rows, columns) }),
      kernel: () => inKernel(narrow, settings),
    };
    const result = compute[formOf(options, operands, settings)]();
    return wrap(p.cast(p.reshape(result, outShape), dtype));
  });
}

/** Attention in one kernel: [...lead, G, L, V]. */
function inKernel({ q, k, v, mask }: AttentionOperands, { scale, causal, bound }: AttentionSettings): Node {
  const masks = mask === null ? [] : [mask];
  const attr = { causal, bound, scale: isSmallFloat(q.dtype) ? scale : 1 };
  const queries = isSmallFloat(q.dtype) ? q : p.mul(q, p.scalar(scale, q.dtype));
  const made = makeNode(attentionPrimitive, [queries, k, v, ...masks], attr);
  const shape = [...q.shape.slice(0, -1), v.shape[v.shape.length - 1]!];
  const every = (n: number): number[] => shape.map(() => n);
  return p.slice(made, every(0), shape, every(1));
}

/** Attention with its whole score matrix: [...lead, G, L, V]. */
function whole({ q, k, v, mask }: AttentionOperands, settings: AttentionSettings): Node {
  const [rows, columns] = [q.shape[q.shape.length - 2]!, k.shape[k.shape.length - 2]!];
  const tile = { row: 0, rows, column: 0, columns, keysFirst: false };
  const hidden = maskOf(mask, tile, settings);
  if (hidden === 'nothing') return p.constant(0, q.dtype, [...q.shape.slice(0, -1), v.shape[v.shape.length - 1]!]);
  const scores = maskedScores(products(p.mul(q, p.scalar(settings.scale, q.dtype)), k), hidden);
  const highest = alongLast(p.stopGradient(scores), 'max');
  const weights = onlyAllowed(p.unary('exp', p.sub(scores, highest)), hidden);
  const total = alongLast(weights, 'sum');
  const none = p.eq(total, p.like(total, 0));
  const divisor = hidden.allowed === null ? total : p.where(none, p.like(total, 1), total);
  // Divided before the product: so one kernel makes the weights and their sum, and the product reads them.
  const shares = p.div(weights, divisor);
  return weighed(dropped(shares, shares.shape, tile, settings.dropout), v);
}

interface Read {
  /** Operands with 16-bit floats as they are, for the kernel. */
  readonly narrow: AttentionOperands;
  /** The same in the dtype that is computed in. */
  readonly operands: AttentionOperands;
  readonly outShape: readonly number[];
  readonly dtype: DType;
}

/** The arguments as operands in the axes of attention-blocks.ts. Throws ShapeError and DTypeError where they do not fit. */
function readOperands(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | null | undefined): Read {
  const [q0, k0] = floatOperands(query, key);
  const [q1, v1] = floatOperands(wrap(q0), value);
  const dtype = q1.dtype;
  // 16-bit floats are computed in 32 bits.
  const wide: DType = dtype === 'float64' ? 'float64' : 'float32';
  const shapes = [q1.shape, k0.shape, v1.shape];
  const rank = Math.max(3, ...shapes.map((shape) => shape.length));
  const own: DType = [k0, v1].every((node) => node.dtype === dtype) ? dtype : wide;
  const [q, k, v] = [q1, k0, v1].map((node) => lifted(p.cast(node, own), rank)) as [Node, Node, Node];
  const [depth, columns] = [q.shape[rank - 1]!, k.shape[rank - 2]!];
  if (shapes.some((s) => s.length < 2) || k.shape[rank - 1] !== depth || v.shape[rank - 2] !== columns)
    throw new ShapeError(
      op,
      say`query, key and value do not fit: ${shapes.map(showShape).join(', ')}; need [..., L, E], [..., S, E] and [..., S, V]`,
      shapes,
    );
  const kv = broadcastShapes(op, k.shape.slice(0, -2), v.shape.slice(0, -2));
  const [queryHeads, keyHeads] = [q.shape[rank - 3]!, kv[rank - 3]!];
  const shared = keyHeads > 0 && queryHeads % keyHeads === 0 ? queryHeads / keyHeads : 1;
  if (shared === 1 && queryHeads !== keyHeads && queryHeads !== 1)
    throw new ShapeError(
      op,
      say`heads do not fit: ${queryHeads} of the query and ${keyHeads} of the keys in ${shapes.map(showShape).join(', ')}; the keys' must divide the query's`,
      shapes,
    );
  const batch = broadcastShapes(op, q.shape.slice(0, -3), kv.slice(0, -1));
  const lead = [...batch, keyHeads];
  const rows = q.shape[rank - 2]!;
  const heads = keyHeads * shared;
  const spread = p.broadcastTo(q, [...batch, heads, rows, depth]);
  const split = (node: Node): Node =>
    p.reshape(node, [
      ...node.shape.slice(0, -3),
      ...(node.shape[rank - 3] === 1 ? [1, 1] : [keyHeads, shared]),
      ...node.shape.slice(-2),
    ]);
  const full = [...batch, heads, rows, columns];
  const wideMask = mask ? readMask(nodeOf(mask), full, wide) : null;
  const narrow = {
    q: p.reshape(spread, [...lead, shared, rows, depth]),
    k: p.broadcastTo(k, [...lead, columns, depth]),
    v: p.broadcastTo(v, [...lead, columns, v.shape[rank - 1]!]),
    mask: wideMask && split(lifted(wideMask, rank)),
  };
  const widened = (node: Node): Node => p.cast(node, wide);
  return {
    narrow,
    operands: { ...narrow, q: widened(narrow.q), k: widened(narrow.k), v: widened(narrow.v) },
    // Two axes in, two axes out.
    outShape: [...full.slice(shapes.every((s) => s.length === 2) ? 1 : 0, -1), v.shape[rank - 1]!],
    dtype,
  };
}

function lifted(node: Node, rank: number): Node {
  return p.reshape(node, [...new Array<number>(Math.max(0, rank - node.shape.length)).fill(1), ...node.shape]);
}

function readMask(mask: Node, full: readonly number[], wide: DType): Node {
  if (mask.dtype !== 'bool' && !isFloat(mask.dtype))
    throw new DTypeError(op, say`mask is ${mask.dtype}: needs bool, or floats to add; compare or cast first`, [
      mask.dtype,
    ]);
  if (mask.shape.length > full.length || !broadcastsTo(mask.shape, full))
    throw new ShapeError(
      op,
      say`mask does not fit: ${showShape(mask.shape)} for scores ${showShape(full)}; it must broadcast to them`,
      [mask.shape, full],
    );
  return mask.dtype === 'bool' ? mask : p.cast(mask, wide);
}

function readSettings(options: AttentionOptions, q: Node, mask: DType): AttentionSettings {
  const { causal = false, causalOffset = 0, dropout = 0, form = 'auto', blockSize } = options;
  const scale = options.scale ?? 1 / Math.sqrt(Math.max(1, q.shape[q.shape.length - 1]!));
  if (!Number.isFinite(scale)) throw new ArgumentError(op, say`bad scale: ${scale}; must be a finite number`);
  if (!Number.isInteger(causalOffset))
    throw new ArgumentError(op, say`bad causalOffset: ${causalOffset}; must be an integer`);
  if (typeof dropout !== 'number' || !(dropout >= 0 && dropout <= 1))
    throw new ArgumentError(op, say`bad dropout: ${dropout}; must be from 0 to 1`);
  if (!['auto', 'whole', 'blocks', 'kernel'].includes(form))
    throw new ArgumentError(op, say`unknown form: ${shown(form)}; must be 'auto', 'whole', 'blocks' or 'kernel'`);
  if (blockSize !== undefined) checkList(op, 'blockSize', blockSize, '[64, 64]');
  if (blockSize && (blockSize.length !== 2 || blockSize.some((n) => !Number.isInteger(n) || n < 1)))
    throw new ArgumentError(op, say`bad blockSize: ${showShape(blockSize)}; must be two integers of at least 1`);
  return {
    scale,
    causal: causal ? causalOffset : null,
    bound: mask === 'float16' ? -32752 : -1.7e38,
    dropout: dropout > 0 ? { rate: dropout, key: resolveKey(options.key) } : null,
  };
}

// Rotary position embedding: pairs of numbers turned by angles that grow with the position.

/** Options of `rotaryEmbedding`. */
export interface RotaryOptions {
  /** Positions, broadcast to x.shape without its last axis. Default: 0, 1, 2 ... along the axis before the last. */
  readonly positions?: Tensor | null;
  /** Added to the positions counted by default: how many came before. Default 0. */
  readonly offset?: number;
  /** Pair k turns by position * base^(-2 k / dims). Default 10000. */
  readonly base?: number;
  /** Which numbers are a pair: neighbours (the paper), or the k-th of the first half and the k-th of the second. Default 'interleaved'. */
  readonly style?: 'interleaved' | 'half';
  /** How many numbers of the last axis turn, from the first; the rest stays. Default all. */
  readonly dims?: number;
}

/**
 * Pairs of numbers turned by angles proportional to their position, so that products of queries and keys depend on the distance between positions
 * alone. Source: Su et al., "RoFormer" (2021).
 *
 * @param x queries or keys, shape [..., positions, width]
 * @param options positions, offset (0), base (10000), style ('interleaved'; 'half' as in GPT-NeoX and Llama), dims (the whole width)
 * @returns the shape of x, of the dtype of the input; integers become float32
 * @throws ArgumentError for an odd number of dims; ShapeError for positions that do not fit
 *
 * @example
 * rotaryEmbedding(tensor([[1, 0], [1, 0]])); // about [[1, 0], [0.5403, 0.8415]]
 */
export function rotaryEmbedding(x: Tensor, options: RotaryOptions = {}): Tensor {
  checkNames('rotaryEmbedding', options, 'positions offset# base# style dims#');
  const op = 'rotaryEmbedding';
  return compose(op, () => {
    const node = floatOperand(x);
    const rank = node.shape.length;
    if (rank < 2)
      throw new ShapeError(
        op,
        say`shape ${showShape(node.shape)} has ${rank} axes: needs at least 2, [..., positions, width]`,
        [node.shape],
      );
    const width = node.shape[rank - 1]!;
    const { base = 10000, style = 'interleaved', dims = width, offset = 0 } = options;
    if (style !== 'interleaved' && style !== 'half')
      throw new ArgumentError(op, say`unknown style: ${shown(style)}; must be 'interleaved' or 'half'`);
    if (!Number.isInteger(dims) || dims < 2 || dims % 2 !== 0 || dims > width)
      throw new ArgumentError(op, say`bad dims: ${dims} of ${width}; must be an even number from 2 to ${width}`);
    if (!Number.isFinite(base) || base <= 0) throw new ArgumentError(op, say`bad base: ${base}; must be above 0`);
    if (!Number.isInteger(offset)) throw new ArgumentError(op, say`bad offset: ${offset}; must be an integer`);
    // Angles in at least 32 bits.
    const wide: DType = node.dtype === 'float64' ? 'float64' : 'float32';
    const angle = angles(op, node, dims / 2, wide, { base, offset, positions: options.positions ?? null });
    const [cos, sin] = [p.unary(cosPrimitive, angle), p.unary(sinPrimitive, angle)];
    const part = (start: number, length: number, step: number): Node =>
      p.cast(
        p.slice(
          node,
          node.shape.map((_, i) => (i === rank - 1 ? start : 0)),
          node.shape.map((n, i) => (i === rank - 1 ? length : n)),
          node.shape.map((_, i) => (i === rank - 1 ? step : 1)),
        ),
        wide,
      );
    const interleaved = style === 'interleaved';
    const first = part(0, dims / 2, interleaved ? 2 : 1);
    const second = part(interleaved ? 1 : dims / 2, dims / 2, interleaved ? 2 : 1);
    const turned = [p.sub(p.mul(first, cos), p.mul(second, sin)), p.add(p.mul(first, sin), p.mul(second, cos))];
    const whole = [...node.shape.slice(0, -1), dims];
    const joined = interleaved
      ? p.reshape(
          p.concat(
            turned.map((t) => p.insertAxes(t, [rank])),
            rank,
          ),
          whole,
        )
      : p.concat(turned, rank - 1);
    const result = dims === width ? joined : p.concat([joined, part(dims, width - dims, 1)], rank - 1);
    return wrap(p.cast(result, node.dtype));
  });
}

/** position * frequency, broadcasts with [..., pairs]. */
function angles(
  op: string,
  x: Node,
  pairs: number,
  dtype: DType,
  { base, offset, positions }: Required<Pick<RotaryOptions, 'base' | 'offset' | 'positions'>>,
): Node {
  const lead = x.shape.slice(0, -1);
  let at: Node;
  if (positions) {
    at = p.cast(nodeOf(positions), dtype);
    if (!broadcastsTo(at.shape, lead))
      throw new ShapeError(
        op,
        say`positions do not fit: ${showShape(at.shape)} for x ${showShape(x.shape)}; must broadcast to ${showShape(lead)}`,
        [at.shape, x.shape],
      );
  } else at = p.add(p.cast(p.iota(lead[lead.length - 1]!), dtype), p.scalar(offset, dtype));
  // Frequencies from the host: a power in float32 would lose digits that large positions multiply.
  const values = Float64Array.from({ length: pairs }, (_, k) => base ** (-k / pairs));
  const frequency = uploadNode(dtype === 'float64' ? values : Float32Array.from(values), [pairs], dtype);
  return p.mul(p.insertAxes(at, [at.shape.length]), frequency);
}
