/** Rows of reductions, running results, sorts, searches, moves of data, and operations by index. */
import { constants, flags, floats, integers, type OperationRow, plain, smooth, sortedFloats } from './row.ts';

const square = [512, 512] as const;
const million = [2 ** 20] as const;
const x = floats(square);
const v = floats(million);
const rows = integers([4096], 0, 512);
const places = integers(million, 0, 2 ** 20);
const within = integers(square, 0, 512);
const image = floats([8, 32, 32, 32]);

/** Three elements on each side of an image. */
const around = [
  [0, 0],
  [0, 0],
  [3, 3],
  [3, 3],
] as const;

export const lineRows: readonly OperationRow[] = [
  smooth('sum', [v], 'a.sum()', (pg, a) => pg.sum(a!)),
  smooth('sum of columns', [x], 'a.sum(0)', (pg, a) => pg.sum(a!, 0)),
  smooth('prod of rows', [floats(square, 0.9, 1.1)], 'a.prod(1)', (pg, a) => pg.prod(a!, 1)),
  smooth('max of rows', [x], 'a.amax(1)', (pg, a) => pg.max(a!, 1)),
  smooth('min', [v], 'a.min()', (pg, a) => pg.min(a!)),
  plain('argMax of rows', [x], 'a.argmax(1)', (pg, a) => pg.argMax(a!, 1)),
  plain('argMin', [v], 'a.argmin()', (pg, a) => pg.argMin(a!)),
  plain('any', [flags(square)], 'a.any(1)', (pg, a) => pg.any(a!, 1)),
  plain('all', [flags(square)], 'a.all(0)', (pg, a) => pg.all(a!, 0)),
  plain('countNonZero', [x], 'torch.count_nonzero(a)', (pg, a) => pg.countNonZero(a!)),
  smooth('mean of rows', [x], 'a.mean(1)', (pg, a) => pg.mean(a!, 1)),
  smooth('variance of rows', [x], 'a.var(1, unbiased=False)', (pg, a) => pg.variance(a!, { axis: 1 })),
  smooth('std of columns', [x], 'a.std(0, unbiased=False)', (pg, a) => pg.std(a!, { axis: 0 })),
  smooth('logSumExp of rows', [x], 'a.logsumexp(1)', (pg, a) => pg.logSumExp(a!, 1)),
  smooth('norm', [v], 'a.norm()', (pg, a) => pg.norm(a!)),
  smooth('nanSum', [v], 'a.nansum()', (pg, a) => pg.nanSum(a!)),
  smooth('nanMean', [v], 'a.nanmean()', (pg, a) => pg.nanMean(a!)),
  smooth('cumSum', [v], 'a.cumsum(0)', (pg, a) => pg.cumSum(a!)),
  smooth('cumSum of columns', [x], 'a.cumsum(0)', (pg, a) => pg.cumSum(a!, 0)),
  smooth('cumProd of rows', [floats(square, 0.9, 1.1)], 'a.cumprod(1)', (pg, a) => pg.cumProd(a!, 1)),
  smooth('cumMax', [v], 'a.cummax(0)[0]', (pg, a) => pg.cumMax(a!)),
  smooth('cumMin of rows', [x], 'a.cummin(1)[0]', (pg, a) => pg.cumMin(a!, 1)),
  smooth('logCumSumExp of rows', [x], 'a.logcumsumexp(1)', (pg, a) => pg.logCumSumExp(a!, 1)),
  smooth('diff', [v], 'a.diff()', (pg, a) => pg.diff(a!)),
  smooth('sort', [v], 'a.sort()[0]', (pg, a) => pg.sort(a!)),
  smooth('sort of rows', [x], 'a.sort(1)[0]', (pg, a) => pg.sort(a!, 1)),
  smooth('sort of columns', [x], 'a.sort(0)[0]', (pg, a) => pg.sort(a!, 0)),
  plain('argSort', [v], 'a.argsort()', (pg, a) => pg.argSort(a!)),
  plain('sort of integers', [places], 'a.sort()[0]', (pg, a) => pg.sort(a!)),
  smooth('topK 10', [v], 'a.topk(10)[0]', (pg, a) => pg.topK(a!, 10)[0]),
  smooth('topK 50 of rows', [x], 'a.topk(50, 1)[0]', (pg, a) => pg.topK(a!, 50, 1)[0]),
  smooth('quantile', [v], 'a.quantile(0.3)', (pg, a) => pg.quantile(a!, 0.3)),
  smooth('quantile of rows', [x], 'a.quantile(0.3, 1)', (pg, a) => pg.quantile(a!, 0.3, 1)),
  smooth('median', [v], 'a.median()', (pg, a) => pg.median(a!, { interpolation: 'lower' })),
  smooth('median of rows', [x], 'a.median(1)[0]', (pg, a) => pg.median(a!, { axis: 1, interpolation: 'lower' })),
  plain('searchSorted', [sortedFloats(million), constants(million)], 'torch.searchsorted(a, b)', (pg, a, b) =>
    pg.searchSorted(a!, b!),
  ),
  plain('searchSorted of 1000', [sortedFloats([1000]), constants(million)], 'torch.searchsorted(a, b)', (pg, a, b) =>
    pg.searchSorted(a!, b!),
  ),
  plain('bucketize', [constants(million), sortedFloats([100])], 'torch.bucketize(a, b)', (pg, a, b) =>
    pg.bucketize(a!, b!),
  ),
  plain('histogram', [constants(million)], 'torch.histc(a, 100)', (pg, a) => pg.histogram(a!, { bins: 100 })),
  plain('histogram with a range', [constants(million)], 'torch.histc(a, 256, -1, 1)', (pg, a) =>
    pg.histogram(a!, { bins: 256, range: [-1, 1] }),
  ),
  plain('counts of classes', [integers(million, 0, 1000)], 'torch.bincount(a, minlength=1000)', (pg, a) =>
    pg.scatterAdd(pg.zeros([1000], { dtype: 'int32' }), a!, pg.onesLike(a!)),
  ),
  plain('nonZero', [flags([1024, 1024])], 'a.nonzero()', (pg, a) => pg.nonZero(a!)),
  plain('maskedSelect', [constants(million), flags(million)], 'a.masked_select(b)', (pg, a, b) =>
    pg.maskedSelect(a!, b!),
  ),
  plain('unique', [integers(million, 0, 1000)], 'a.unique()', (pg, a) => pg.unique(a!)),
  plain('unique of floats', [constants(million)], 'a.sort()[0].unique_consecutive()', (pg, a) => pg.unique(a!)),
  smooth('softmax', [x], 'a.softmax(1)', (pg, a) => pg.softmax(a!, 1)),
  smooth('softmin', [x], 'F.softmin(a, 1)', (pg, a) => pg.softmin(a!, 1)),
  smooth('logSoftmax', [x], 'a.log_softmax(1)', (pg, a) => pg.logSoftmax(a!, 1)),
  smooth('softmax of columns', [x], 'a.softmax(0)', (pg, a) => pg.softmax(a!, 0)),

  smooth('transpose', [x], 'a.T.contiguous()', (pg, a) => pg.contiguous(pg.transpose(a!))),
  smooth('permute 0 2 1 3', [image], 'a.permute(0, 2, 1, 3).contiguous()', (pg, a) =>
    pg.contiguous(pg.permute(a!, [0, 2, 1, 3])),
  ),
  smooth('expand', [floats([512, 1])], 'a.expand(512, 512).contiguous()', (pg, a) =>
    pg.contiguous(pg.expand(a!, [512, 512])),
  ),
  smooth('tile', [floats([256, 256])], 'a.tile(2, 2)', (pg, a) => pg.tile(a!, [2, 2])),
  smooth('repeatInterleave', [floats([256, 512])], 'a.repeat_interleave(2, 0)', (pg, a) =>
    pg.repeatInterleave(a!, 2, { axis: 0 }),
  ),
  smooth('repeatInterleave along rows', [floats([512, 256])], 'a.repeat_interleave(2, 1)', (pg, a) =>
    pg.repeatInterleave(a!, 2, { axis: 1 }),
  ),
  smooth('slice', [x], 'a[1:511, ::2].contiguous()', (pg, a) =>
    pg.contiguous(pg.slice(a!, [{ start: 1, stop: 511 }, { step: 2 }])),
  ),
  smooth('flip', [x], 'a.flip(0, 1)', (pg, a) => pg.contiguous(pg.flip(a!))),
  smooth('roll', [x], 'a.roll((3, 5), (0, 1))', (pg, a) => pg.roll(a!, [3, 5], [0, 1])),
  smooth('roll of a line', [v], 'a.roll(1000)', (pg, a) => pg.roll(a!, 1000)),
  smooth('split', [x], '[t.contiguous() for t in a.split(128, 1)]', (pg, a) =>
    pg.split(a!, 128, 1).map((part) => pg.contiguous(part)),
  ),
  smooth('unbind', [floats([8, 512, 64])], '[t.contiguous() for t in a.unbind(1)][:64]', (pg, a) =>
    pg
      .unbind(a!, 1)
      .slice(0, 64)
      .map((part) => pg.contiguous(part)),
  ),
  smooth('pad', [image], 'F.pad(a, (1, 1, 1, 1))', (pg, a) =>
    pg.pad(a!, [
      [0, 0],
      [0, 0],
      [1, 1],
      [1, 1],
    ]),
  ),
  smooth('pad by reflection', [image], 'F.pad(a, (3, 3, 3, 3), "reflect")', (pg, a) =>
    pg.pad(a!, around, { mode: 'reflect' }),
  ),
  smooth('pad circular', [image], 'F.pad(a, (3, 3, 3, 3), "circular")', (pg, a) =>
    pg.pad(a!, around, { mode: 'circular' }),
  ),
  smooth('diagEmbed', [floats([16, 128])], 'a.diag_embed()', (pg, a) => pg.diagEmbed(a!)),
  smooth('diagonal', [floats([64, 128, 128])], 'a.diagonal(0, 1, 2).contiguous()', (pg, a) =>
    pg.contiguous(pg.diagonal(a!, { axis1: 1, axis2: 2 })),
  ),
  smooth('rot90', [x], 'a.rot90()', (pg, a) => pg.contiguous(pg.rot90(a!))),
  smooth('trace', [x], 'a.trace()', (pg, a) => pg.trace(a!)),
  smooth('tril', [x], 'a.tril()', (pg, a) => pg.tril(a!)),
  smooth('triu', [x], 'a.triu()', (pg, a) => pg.triu(a!)),
  plain('oneHot', [integers([4096], 0, 100)], 'F.one_hot(a, 100).float()', (pg, a) =>
    pg.oneHot(a!, 100, { dtype: 'float32' }),
  ),
  smooth('concat', [x, x], 'torch.cat([a, b])', (pg, a, b) => pg.concat([a!, b!])),
  smooth('stack', [x, x], 'torch.stack([a, b], 1)', (pg, a, b) => pg.stack([a!, b!], 1)),
  smooth('stack last', [v, v], 'torch.stack([a, b], -1)', (pg, a, b) => pg.stack([a!, b!], -1)),

  smooth('take', [v, places], 'a[b]', (pg, a, b) => pg.take(a!, b!)),
  smooth('indexSelect', [x, rows], 'a.index_select(0, b)', (pg, a, b) => pg.indexSelect(a!, b!, 0)),
  smooth('indexSelect of columns', [x, integers([512], 0, 512)], 'a.index_select(1, b)', (pg, a, b) =>
    pg.indexSelect(a!, b!, 1),
  ),
  smooth('takeAlongAxis', [x, within], 'a.take_along_dim(b, 1)', (pg, a, b) => pg.takeAlongAxis(a!, b!, 1)),
  smooth('gather of columns', [x, within], 'a.gather(0, b)', (pg, a, b) => pg.gather(a!, b!, 0)),
  smooth('gather of a class', [x, integers([512, 1], 0, 512)], 'a.gather(1, b)', (pg, a, b) => pg.gather(a!, b!, 1)),
  smooth('scatterAdd', [v, places, v], 'a.scatter_add(0, b, c)', (pg, a, b, c) => pg.scatterAdd(a!, b!, c!)),
  smooth('scatterAdd of rows', [x, within, x], 'a.scatter_add(1, b, c)', (pg, a, b, c) => pg.scatterAdd(a!, b!, c!, 1)),
  smooth('indexAdd', [x, rows, floats([4096, 512])], 'a.index_add(0, b, c)', (pg, a, b, c) => pg.indexAdd(a!, b!, c!)),
  smooth('scatter', [v, places, v], 'a.scatter(0, b, c)', (pg, a, b, c) => pg.scatter(a!, b!, c!)),
  plain('scatter of rows', [x, within, x], 'a.scatter(1, b, c)', (pg, a, b, c) => pg.scatter(a!, b!, c!, 1)),
  ...(['sum', 'prod', 'mean', 'max'] as const).map((reduce) =>
    plain(
      `scatterReduce ${reduce}`,
      [constants(million), places, constants(million)],
      `a.scatter_reduce(0, b, c, "${reduce === 'max' ? 'amax' : reduce}")`,
      (pg, a, b, c) => pg.scatterReduce(a!, b!, c!, reduce),
    ),
  ),
  plain('indexCopy', [x, integers([256], 0, 512), floats([256, 512])], 'a.index_copy(0, b, c)', (pg, a, b, c) =>
    pg.indexCopy(a!, b!, c!),
  ),
  plain('indexFill', [x, integers([256], 0, 512)], 'a.index_fill(0, b, 7)', (pg, a, b) => pg.indexFill(a!, b!, 7)),
  smooth('gatherNd', [x, integers([2 ** 18, 2], 0, 512)], 'a[b[:, 0], b[:, 1]]', (pg, a, b) => pg.gatherNd(a!, b!)),
  smooth(
    'scatterNd',
    [integers([2 ** 18, 2], 0, 512), floats([2 ** 18])],
    'torch.zeros(512, 512).index_put((a[:, 0], a[:, 1]), b, accumulate=True)',
    (pg, a, b) => pg.scatterNd(a!, b!, [512, 512]),
  ),
  smooth('embedding', [integers([8192], 0, 10_000), floats([10_000, 64])], 'F.embedding(a, b)', (pg, a, b) =>
    pg.embedding(a!, b!),
  ),
  smooth(
    'embeddingBag',
    [integers([1024, 8], 0, 10_000), floats([10_000, 64])],
    'F.embedding_bag(a, b, mode="mean")',
    (pg, a, b) => pg.embeddingBag(a!, b!),
  ),
];
