/** Methods of Tensors: running results, sorting, searching and quantiles. Details, shapes and errors are told with the functions. */
import {
  type CumulativeOptions,
  type CumulativeSumOptions,
  type DiffOptions,
  cumMax,
  cumMin,
  cumProd,
  cumSum,
  diff,
  logCumSumExp,
} from '../ops/cumulative.ts';
import { type QuantileOptions, median, quantile } from '../ops/quantile.ts';
import { unique, type UniqueOptions, type UniqueResult } from '../ops/selecting.ts';
import { type SortIndices, type SortOptions, type TopKOptions, argSort, sort, topK } from '../ops/sorting.ts';
import {
  bucketize,
  type HistogramEdges,
  type HistogramOptions,
  histogram,
  type SearchOptions,
  searchSorted,
} from '../ops/searching.ts';
import type { AxisArgument, Tensor, TensorLike } from '../tensor/types.ts';

export interface OrderMethods {
  /** Sums of all elements up to each one. */
  cumSum(axis?: number | CumulativeSumOptions): Tensor;
  /** Products of all elements up to each one. Its derivatives are exact with any number of zeros. */
  cumProd(axis?: number | CumulativeSumOptions): Tensor;
  /** The largest element up to each one; NaN from the first NaN on. */
  cumMax(axis?: number | CumulativeOptions): Tensor;
  /** The smallest element up to each one; NaN from the first NaN on. */
  cumMin(axis?: number | CumulativeOptions): Tensor;
  /** log(cumSum(exp(x))) without overflow. */
  logCumSumExp(axis?: number | CumulativeOptions): Tensor;
  /** Each element minus the one before it, n times over. */
  diff(options?: number | DiffOptions): Tensor;

  /** The elements in order along an axis; NaN is greater than every number. */
  sort(options: SortOptions & SortIndices): [Tensor, Tensor];
  sort(options?: number | SortOptions): Tensor;
  /** The positions (int32) of the elements in order along an axis. */
  argSort(options?: number | SortOptions): Tensor;
  /** The k greatest elements along an axis, greatest first, and where they are. */
  topK(k: number, options?: number | TopKOptions): [Tensor, Tensor];
  /** The middle element in order, or the mean of the two middle ones; NaN if an element is. */
  median(options?: QuantileOptions | AxisArgument): Tensor;
  /** The value below which a part q of the elements lies. */
  quantile(q: number | readonly number[], options?: QuantileOptions | AxisArgument): Tensor;
  /** The different elements in increasing order. Asynchronous, because their number depends on data. */
  unique(options: UniqueOptions): Promise<UniqueResult>;
  unique(): Promise<Tensor>;

  /** Where values would go in these sorted elements. */
  searchSorted(values: TensorLike, options?: SearchOptions): Tensor;
  /** The numbers of the buckets between sorted boundaries that the elements fall into. */
  bucketize(boundaries: Tensor, options?: SearchOptions): Tensor;
  /** How many elements fall into each of some intervals. */
  histogram(options: HistogramOptions & HistogramEdges): [Tensor, Tensor];
  histogram(options?: HistogramOptions): Tensor;
}

function sorted(this: Tensor, options: SortOptions & SortIndices): [Tensor, Tensor];
function sorted(this: Tensor, options?: number | SortOptions): Tensor;
function sorted(this: Tensor, options?: number | (SortOptions & Partial<SortIndices>)): Tensor | [Tensor, Tensor] {
  return sort(this, options as SortOptions);
}

function distinct(this: Tensor, options: UniqueOptions): Promise<UniqueResult>;
function distinct(this: Tensor): Promise<Tensor>;
function distinct(this: Tensor, options?: UniqueOptions): Promise<Tensor | UniqueResult> {
  return options === undefined ? unique(this) : unique(this, options);
}

function counted(this: Tensor, options: HistogramOptions & HistogramEdges): [Tensor, Tensor];
function counted(this: Tensor, options?: HistogramOptions): Tensor;
function counted(this: Tensor, options?: HistogramOptions): Tensor | [Tensor, Tensor] {
  return histogram(this, options);
}

export const orderMethods: OrderMethods & ThisType<Tensor> = {
  cumSum(axis) {
    return cumSum(this, axis);
  },
  cumProd(axis) {
    return cumProd(this, axis);
  },
  cumMax(axis) {
    return cumMax(this, axis);
  },
  cumMin(axis) {
    return cumMin(this, axis);
  },
  logCumSumExp(axis) {
    return logCumSumExp(this, axis);
  },
  diff(options) {
    return diff(this, options);
  },
  sort: sorted,
  argSort(options) {
    return argSort(this, options);
  },
  topK(k, options) {
    return topK(this, k, options);
  },
  median(options) {
    return median(this, options);
  },
  quantile(q, options) {
    return quantile(this, q, options);
  },
  unique: distinct,
  searchSorted(values, options) {
    return searchSorted(this, values, options);
  },
  bucketize(boundaries, options) {
    return bucketize(this, boundaries, options);
  },
  histogram: counted,
};
