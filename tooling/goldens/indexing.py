"""Elements picked and put by index tensors; sorting, searching, selecting.

Left out, because the documented contract differs from torch there:
- repeated indices in indexCopy and scatter: any of the writers may win in torch;
- orders of equal keys: sorts are stable here, so torch's stable sort is used, and topK gets distinct values;
- second slopes of scatterReduce with prod, max and min (none in torch).
"""

import torch
import torch.nn.functional as F

from cases import add
from draw import AWAY, GRID, I, LIT, OF, T, U


def long(f):
    """Index tensors are int64 in torch."""
    return lambda *a, **k: f(*[v.to(torch.int64) if isinstance(v, torch.Tensor) and v.dtype == torch.int32 else v for v in a], **k)


def scatter_reduce(x, indices, updates, reduce, axis=-1, includeSelf=True):
    return x.scatter_reduce(axis, indices, updates, {'max': 'amax', 'min': 'amin'}.get(reduce, reduce), include_self=includeSelf)


def scatter_nd(indices, updates, shape):
    base = torch.zeros(shape, dtype=updates.dtype)
    return base.index_put(tuple(indices[..., i] for i in range(indices.shape[-1])), updates, accumulate=True)


def histogram(x, bins=10, range=None, weights=None, returnEdges=False):
    counts, edges = torch.histogram(x, bins, range=range, weight=weights)
    return [counts, edges] if returnEdges else counts


def unique(x, returnInverse=False, returnCounts=False):
    got = torch.unique(x, return_inverse=returnInverse, return_counts=returnCounts)
    return got if isinstance(got, torch.Tensor) else list(got)


def gather_nd(x, indices):
    return x[tuple(indices[..., i] for i in range(indices.shape[-1]))]


def take(x, indices, axis=0):
    shape = list(x.shape[:axis]) + list(indices.shape) + list(x.shape[axis + 1 :])
    return x.index_select(axis, indices.reshape(-1)).reshape(shape)


def sort(x, axis=-1, descending=False, returnIndices=False):
    r = torch.sort(x, dim=axis, descending=descending, stable=True)
    return list(r) if returnIndices else r.values


def arg_sort(x, axis=-1, descending=False):
    return torch.sort(x, dim=axis, descending=descending, stable=True).indices


def top_k(x, k, axis=-1, largest=True):
    return list(torch.topk(x, k, dim=axis, largest=largest))


CALLS = {
    'gather': long(lambda x, i, axis=0: x.gather(axis, i)),
    'takeAlongAxis': long(lambda x, i, axis=0: torch.take_along_dim(x, i, axis)),
    'take': long(take),
    'indexSelect': long(lambda x, i, axis=0: x.index_select(axis, i)),
    'scatterAdd': long(lambda x, i, u, axis=0: x.scatter_add(axis, i, u)),
    'indexAdd': long(lambda x, i, u, axis=0: x.index_add(axis, i, u)),
    'scatter': long(lambda x, i, u, axis=0: x.scatter(axis, i, u)),
    'scatterReduce': long(scatter_reduce),
    'indexCopy': long(lambda x, i, u, axis=0: x.index_copy(axis, i, u)),
    'indexFill': long(lambda x, i, value, axis=0: x.index_fill(axis, i, value)),
    'gatherNd': long(gather_nd),
    'embedding': long(lambda i, w, paddingIdx=None: F.embedding(i, w, paddingIdx)),
    'sort': sort,
    'argSort': arg_sort,
    'topK': top_k,
    'searchSorted': lambda x, v, right=False: torch.searchsorted(x.contiguous(), v.contiguous(), right=right),
    'bucketize': lambda x, edges, right=False: torch.bucketize(x.contiguous(), edges.contiguous(), right=right),
    'nonZero': lambda x: x.nonzero(),
    'maskedSelect': lambda x, mask: x.masked_select(mask),
    'unique': unique,
    'histogram': histogram,
    'scatterNd': long(scatter_nd),
}  # fmt: skip


def cases():
    indexing()
    scattering()
    sorting()
    for dtype in ('int8', 'int16', 'int32', 'int64', 'uint8', 'bool', 'float16', 'bfloat16'):
        kind = I(0, 1) if dtype == 'bool' else GRID(-8, 8, 4) if 'float' in dtype else I(0, 100)
        add('gather', [T([3, 4], kind), T([2, 4], I(0, 2), dtype='int32'), 0], dtypes=dtype)
        if dtype != 'bool':
            add('sort', [T([3, 7], kind)], {'axis': 1}, dtypes=dtype)
            add('argSort', [T([3, 7], kind)], {'axis': 1}, dtypes=dtype)


def ix(shape, n, **more):
    return T(shape, I(0, n - 1), dtype='int32', **more)


def indexing():
    for s, i, axis in (([5], [3], 0), ([3, 4], [2, 4], 0), ([3, 4], [3, 6], 1), ([2, 3, 2], [2, 2, 2], 1), ([4, 2], [0, 2], 0)):
        add('gather', [T(s), ix(i, s[axis]), axis])
        add('takeAlongAxis', [T(s), ix(i, s[axis]), axis])
    for s, i, axis in (([5], [3], 0), ([3, 4], [2], 0), ([3, 4], [2, 3], 1), ([2, 3, 2], [4], 1), ([3, 4], [], 0), ([3, 4], [0], 1)):
        add('take', [T(s), ix(i, s[axis]), axis])
        if len(i) == 1:
            add('indexSelect', [T(s), ix(i, s[axis]), axis])
    add('embedding', [ix([5], 4), T([4, 3])])
    add('embedding', [ix([2, 3], 4), T([4, 3])])
    add('embedding', [ix([2, 3], 4), T([4, 3])], {'paddingIdx': 1})
    for s in ([4], [2, 3], [2, 1, 3]):
        add('maskedFill', [T(s), T(s, I(0, 1), dtype='bool'), 7.5])
    add('maskedFill', [T([2, 3]), T([3], I(0, 1), dtype='bool'), float('-inf')], special=True)
    add('gatherNd', [T([3, 4]), T([2, 2], I(0, 2), dtype='int32')])
    add('gatherNd', [T([3, 4, 2]), T([4, 2], I(0, 2), dtype='int32')])
    add('gatherNd', [T([3, 4]), T([2, 3, 1], I(0, 2), dtype='int32')])
    add('oneHot', [ix([4], 3), 3], grad=False, dtypes='float32')
    add('oneHot', [ix([2, 2], 5), 5], grad=False, dtypes='float32')


def scattering():
    add('scatterNd', [T([4, 1], LIT(1, 3, 1, 0), dtype='int32'), T([4]), [5]])
    add('scatterNd', [T([3, 2], LIT(0, 1, 2, 0, 0, 1), dtype='int32'), T([3, 2]), [3, 2, 2]])
    add('scatterNd', [T([2, 2, 1], LIT(1, 0, 1, 1), dtype='int32'), T([2, 2, 3]), [3, 3]])
    for s, i, axis in (([5], [7], 0), ([3, 4], [2, 4], 0), ([3, 4], [3, 6], 1), ([2, 3, 2], [2, 5, 2], 1)):
        add('scatterAdd', [T(s), ix(i, s[axis]), T(i), axis])
        for how in ('sum', 'mean', 'prod', 'max', 'min'):
            for own in (True, False):
                add('scatterReduce', [T(s, AWAY(0.5, 1.5), expand=False), ix(i, s[axis]), T(i, AWAY(0.5, 1.5), expand=False), how], {'axis': axis, 'includeSelf': own}, second=False)
    for s, i, axis in (([5], [7], 0), ([3, 4], [2], 0), ([3, 4], [6], 1), ([2, 3, 2], [5], 1)):
        u = [i[0] if d == axis else n for d, n in enumerate(s)]
        add('indexAdd', [T(s), ix(i, s[axis]), T(u), axis])
    for s, places, axis in (([5], (3, 0), 0), ([3, 4], (2, 0), 0), ([3, 4], (3, 1, 2), 1), ([2, 3, 2], (2, 1), 1)):
        n = len(places)
        u = [n if d == axis else size for d, size in enumerate(s)]
        at = T([n], LIT(*places), dtype='int32')
        add('indexCopy', [T(s), at, T(u), axis])
        add('indexFill', [T(s), at, 2.5, axis])
        if len(s) == 1:
            add('scatter', [T(s), at, T(u), axis])
    add('scatter', [T([3, 4]), T([2, 3], LIT(0, 1, 2, 2, 0, 1), dtype='int32'), T([2, 3]), 0])
    add('scatter', [T([3, 4]), T([3, 2], LIT(0, 1, 3, 2, 1, 0), dtype='int32'), T([3, 2]), 1])


def sorting():
    for s, axis in (([7], 0), ([3, 5], 1), ([5, 3], 0), ([2, 4, 3], 1), ([1], 0), ([2, 70], -1), ([0, 3], 0), ([300], 0)):
        for down in (False, True):
            o = {'axis': axis, 'descending': down}
            add('sort', [T(s, expand=False)], o)
            add('argSort', [T(s, expand=False)], o, grad=False)
            add('sort', [T(s, expand=False)], {**o, 'returnIndices': True})
            if len(s) < 3:
                add('sort', [T(s, I(-2, 2))], o, grad=False, note='ties')
                add('argSort', [T(s, I(-2, 2))], o, grad=False, note='ties')
    values = LIT(3, 'nan', '-inf', 1, 'inf', -2)
    add('sort', [T([6], values)], {'axis': 0}, special=True, note='special values')
    add('argSort', [T([6], values)], {'axis': 0}, special=True, note='special values')
    add('sort', [T([6], values)], {'axis': 0, 'descending': True}, special=True, note='special values')
    add('topK', [T([6], LIT(3, 'nan', '-inf', 1, 'inf', -2)), 3], special=True, note='special values')
    for s, k, axis in (([7], 3, 0), ([3, 5], 2, 1), ([5, 3], 4, 0), ([2, 4, 3], 1, 1), ([4], 4, 0), ([300], 5, 0)):
        for largest in (True, False):
            add('topK', [T(s, expand=False), k], {'axis': axis, 'largest': largest})
    edges = T([5], LIT(-1.5, -0.5, 0, 0.5, 1.5))
    for right in (False, True):
        add('searchSorted', [edges, T([2, 4], OF(-2, -1.5, 0, 0.25, 0.5, 3))], {'right': right}, grad=False)
        add('bucketize', [T([2, 4], OF(-2, -1.5, 0, 0.25, 0.5, 3)), T([5], LIT(-1.5, -0.5, 0, 0.5, 1.5))], {'right': right}, grad=False)
    for s in ([6], [3, 4], [2, 2, 3], [0, 2]):
        add('nonZero', [T(s, OF(0, 0, 1, -2))], grad=False)
        add('unique', [T(s, I(-3, 3))], grad=False)
        add('unique', [T(s, I(-3, 3))], {'returnInverse': True, 'returnCounts': True}, grad=False)
        add('maskedSelect', [T(s), T(s, I(0, 1), dtype='bool')], grad=False)
    add('maskedSelect', [T([2, 3]), T([3], I(0, 1), dtype='bool')], grad=False)
    add('histogram', [T([40], U(-2, 2))], {'bins': 8, 'range': [-2, 2]}, grad=False)
    add('histogram', [T([5, 8], U(-2, 2), expand=False)], {'bins': 5, 'returnEdges': True}, grad=False)
    add('histogram', [T([30], U(-2, 2))], {'bins': 4, 'range': [-1, 1], 'weights': T([30], U(0, 1))}, grad=False)
    for dtype in ('int32', 'int64', 'int8', 'uint8', 'bool'):
        small = I(0, 1) if dtype == 'bool' else I(0, 9)
        add('unique', [T([9], small)], dtypes=dtype)
        add('nonZero', [T([3, 3], I(0, 1))], dtypes=dtype)
        if dtype != 'bool':
            add('topK', [T([3, 9], LIT(*[(7 * i) % 27 for i in range(27)])), 3], dtypes=dtype)
