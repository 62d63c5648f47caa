/** Embedding and EmbeddingBag: a learned table that integers look rows up in, one by one or in bags. */
import {
  customGradient,
  div,
  type DType,
  embedding,
  embeddingBag,
  type EmbeddingBagOptions,
  greater,
  keep,
  logicalAnd,
  maximum,
  mul,
  noGrad,
  norm,
  ones,
  reshape,
  scatterAdd,
  scope,
  type Tensor,
  tensor,
  where,
  zeros,
} from '@polygrad/core/functions';
import { checkFits, checkInteger, checkNumber, checkOptions, checkTensor, NnError } from '../errors.ts';
import { type Initializer, normalInit } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { withOwnValues } from '../module/own-values.ts';
import { parameter } from '../module/parameter.ts';

/** Options of `Embedding`. */
export interface EmbeddingLayerOptions {
  /** A row that receives no gradient; it is zero at first, unless `weightInit` is given. Negative ones count from the end. */
  readonly paddingIdx?: number;
  /** First value of the table (default normal, as in PyTorch). */
  readonly weightInit?: Initializer;
  /** Rows that are looked up and longer than this are shortened to it in the table, before they are used. Default: as long as they are. */
  readonly maxNorm?: number;
  /** Which length that is: the p of a p-norm (default 2). */
  readonly normType?: number;
  /** The gradient of a row is divided by how often the call looks it up (default false). */
  readonly scaleGradByFreq?: boolean;
  readonly dtype?: DType;
}

/** The first table: normal numbers, and zeros in the row of padding. */
function firstTable(op: string, rows: number, width: number, options: EmbeddingLayerOptions): Tensor {
  const { paddingIdx, weightInit, dtype = 'float32' } = options;
  if (paddingIdx !== undefined) checkInteger(op, 'paddingIdx', paddingIdx, -rows, rows - 1);
  const table = (weightInit ?? normalInit())([rows, width], dtype);
  if (paddingIdx === undefined || weightInit !== undefined) return table;
  return scope(() => {
    const kept = new Float32Array(rows).fill(1);
    kept[paddingIdx < 0 ? paddingIdx + rows : paddingIdx] = 0;
    const zeroed = table.mul(tensor(kept, { shape: [rows, 1], dtype }));
    table.dispose();
    return zeroed;
  });
}

/** What a call does to the table and its gradient beside looking rows up. */
class TableRules {
  readonly #maxNorm: number | undefined;
  readonly #normType: number;
  readonly #scaleGradByFreq: boolean;

  constructor(op: string, { maxNorm, normType = 2, scaleGradByFreq = false }: EmbeddingLayerOptions) {
    if (maxNorm !== undefined) checkNumber(op, 'maxNorm', maxNorm, 0);
    checkFits(op, 'normType', normType, typeof normType === 'number' && normType > 0, 'a number above 0');
    this.#maxNorm = maxNorm;
    this.#normType = normType;
    this.#scaleGradByFreq = scaleGradByFreq;
  }

  /** The table for a call with these indices. Its rows are shortened in place, and its gradients divided by counts, where the options say so. */
  apply(op: string, table: Tensor, indices: Tensor): Tensor {
    if (this.#maxNorm === undefined && !this.#scaleGradByFreq) return table;
    checkTensor(op, 'indices', indices);
    const counts = noGrad(() => this.#counts(table, indices));
    let isShort = true;
    if (this.#maxNorm !== undefined) {
      const used = keep(noGrad(() => greater(counts, 0)));
      isShort = withOwnValues(() => {
        scope(() => void noGrad(() => table.assign(this.#shortened(table, used))));
        used.dispose();
      });
    }
    // Where the change waits, the call has it before.
    const rules = customGradient(
      (t, n) => (isShort ? t! : this.#shortened(t!, greater(n!, 0))),
      (g, { inputs: [, n] }) => [this.#scaleGradByFreq ? g.div(maximum(n!, 1)) : g, null],
    );
    return rules(table, counts);
  }

  /** How often each row is looked up: [rows, 1], in the table's dtype. */
  #counts(table: Tensor, indices: Tensor): Tensor {
    const { dtype } = table;
    const flat = reshape(indices, [indices.size]);
    return reshape(scatterAdd(zeros([table.shape[0]!], { dtype }), flat, ones([indices.size], { dtype })), [-1, 1]);
  }

  /** The table with used rows no longer than allowed, each by the same factor. Source: PyTorch `embedding_renorm_`. */
  #shortened(table: Tensor, used: Tensor): Tensor {
    const length = norm(table, { p: this.#normType, axis: 1, keepDims: true });
    const factor = div(this.#maxNorm!, length.add(1e-7));
    return where(logicalAnd(used, greater(length, this.#maxNorm!)), mul(table, factor), table);
  }
}

/**
 * Rows of a table. Source: PyTorch `nn.Embedding`.
 *
 * @example
 * const table = new Embedding(100, 16);
 * table.forward(tensor([[3, 7, 7]], { dtype: 'int32' })).shape; // [1, 3, 16]
 */
export class Embedding extends Module {
  /** Shape [rows, width]. */
  readonly weight: Tensor;
  readonly paddingIdx: number | undefined;
  readonly #rules: TableRules;

  constructor(rows: number, width: number, options: EmbeddingLayerOptions = {}) {
    super();
    checkOptions('Embedding', options, 'paddingIdx weightInit! dtype maxNorm# normType# scaleGradByFreq?');
    checkInteger('Embedding', 'rows', rows, 1);
    checkInteger('Embedding', 'width', width, 1);
    this.weight = parameter(firstTable('Embedding', rows, width, options));
    this.paddingIdx = options.paddingIdx;
    this.#rules = new TableRules('Embedding', options);
  }

  /** @param indices integers of any shape; the result has one axis more */
  forward(indices: Tensor): Tensor {
    const table = this.#rules.apply('Embedding', this.weight, indices);
    return embedding(indices, table, this.paddingIdx === undefined ? {} : { paddingIdx: this.paddingIdx });
  }
}

/** Options of `EmbeddingBag`. */
export interface EmbeddingBagLayerOptions extends EmbeddingLayerOptions {
  /** What becomes of the rows of a bag: 'mean' (default), 'sum' or 'max'. */
  readonly mode?: 'mean' | 'sum' | 'max';
}

/** What one call of EmbeddingBag says beside its indices. */
export type BagCall = Pick<EmbeddingBagOptions, 'offsets' | 'perSampleWeights'>;

/**
 * Means, sums or maxima of rows of a table, bag by bag. Source: PyTorch `nn.EmbeddingBag`, whose weights it can load.
 *
 * @example
 * const table = new EmbeddingBag(100, 16);
 * table.forward(tensor([[3, 7, 7]], { dtype: 'int32' })).shape; // [1, 16]
 * table.forward(tensor([3, 7, 7], { dtype: 'int32' }), { offsets: [0, 1] }).shape; // [2, 16]
 */
export class EmbeddingBag extends Module<[indices: Tensor, call?: BagCall]> {
  /** Shape [rows, width]. */
  readonly weight: Tensor;
  readonly options: Pick<EmbeddingBagOptions, 'mode' | 'paddingIdx'>;
  readonly #rules: TableRules;

  constructor(rows: number, width: number, options: EmbeddingBagLayerOptions = {}) {
    super();
    const names = 'paddingIdx weightInit! dtype mode maxNorm# normType# scaleGradByFreq?';
    checkOptions('EmbeddingBag', options, names);
    checkInteger('EmbeddingBag', 'rows', rows, 1);
    checkInteger('EmbeddingBag', 'width', width, 1);
    const { mode = 'mean', paddingIdx } = options;
    if (mode === 'max' && options.scaleGradByFreq)
      throw new NnError('EmbeddingBag', "scaleGradByFreq has no meaning with mode 'max'; choose 'sum' or 'mean'", [
        'scaleGradByFreq',
      ]);
    this.weight = parameter(firstTable('EmbeddingBag', rows, width, options));
    this.options = paddingIdx === undefined ? { mode } : { mode, paddingIdx };
    this.#rules = new TableRules('EmbeddingBag', options);
  }

  /**
   * @param indices integers [bags, n], or [n] with offsets
   * @param call offsets: where each bag starts; perSampleWeights: factors of the rows, for mode 'sum'
   * @returns shape [bags, width]
   */
  forward(indices: Tensor, call: BagCall = {}): Tensor {
    checkOptions('EmbeddingBag', call, 'offsets perSampleWeights');
    const table = this.#rules.apply('EmbeddingBag', this.weight, indices);
    return embeddingBag(indices, table, { ...this.options, ...call });
  }
}
