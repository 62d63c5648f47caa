"""Reductions, statistics, softmax, running sums.

Left out, because the documented contract differs from torch there:
- prod, sum ... of small integers: the values are compared, whatever width the library gives the result;
- slopes of norms other than 2 at 0, of std at 0, of median and quantile at ties (torch chooses one of the equals);
- max and min over nothing: an error in both;
- positions that cumMax and cumMin give among equals (torch the last, others the first).
"""

import math

import torch

from cases import add
from draw import AWAY, GRID, I, LIT, OF, T, U


def axes(x, axis):
    if axis is None:
        return list(range(x.dim()))
    return [axis] if isinstance(axis, int) else list(axis)


def over(f):
    """f(x, axes, keepDims) as a reduction of Polygrad's."""
    return lambda x, axis=None, keepDims=False, **more: f(x, axes(x, axis), keepDims, **more)


def sum_(x, dims, keep):
    return x.sum(dims, keepdim=keep) if dims else x.clone() if x.is_floating_point() else x.to(torch.int64)


def prod(x, dims, keep):
    for d in sorted([d % x.dim() for d in dims], reverse=True):
        x = x.prod(d, keepdim=True)
    return x if keep or not dims else x.squeeze() if len(dims) == x.dim() else squeeze(x, dims)


def squeeze(x, dims):
    for d in sorted([d % x.dim() for d in dims], reverse=True):
        x = x.squeeze(d)
    return x


def each(f):
    """A reduction along one axis as one along several."""

    def g(x, dims, keep):
        for d in sorted([d % x.dim() for d in dims], reverse=True):
            x = f(x, d)
        return x if keep else squeeze(x, dims)

    return g


def spread(name):
    def g(x, axis=None, keepDims=False, correction=0):
        dims = axes(x, axis)
        return getattr(torch, name)(x, dim=dims, correction=correction, keepdim=keepDims) if dims else torch.zeros_like(x)

    return g


def norm(x, axis=None, keepDims=False, p=2):
    return torch.linalg.vector_norm(x, ord=p, dim=axes(x, axis), keepdim=keepDims)


def arg(name):
    return lambda x, axis=None, keepDims=False: getattr(torch, name)(x, dim=axis, keepdim=keepDims)


def running_total(f, empty=None):
    """A running operation forwards or backwards, with the element itself or without (then `empty` comes first)."""

    def g(x, axis=-1, reverse=False, exclusive=False):
        x = x.flip([axis]) if reverse else x
        y = f(x, axis)
        if exclusive:
            n = x.shape[axis]
            first = torch.full_like(y.narrow(axis, 0, min(1, n)), empty)
            y = torch.cat([first, y.narrow(axis, 0, max(0, n - 1))], axis)
        return y.flip([axis]) if reverse else y

    return g


def quantile(x, q, axis=None, keepDims=False, interpolation='linear'):
    if isinstance(axis, list):
        rest = [d for d in range(x.dim()) if d not in axis]
        x = x.permute(rest + axis).flatten(len(rest))
        axis = -1
    q = torch.tensor(q, dtype=x.dtype) if isinstance(q, list) else q
    return torch.quantile(x, q, dim=axis, keepdim=keepDims, interpolation=interpolation)


CALLS = {
    'sum': over(sum_),
    'prod': over(prod),
    'mean': over(lambda x, d, k: x.mean(d, keepdim=k) if d else x.clone()),
    'max': over(lambda x, d, k: x.amax(d, keepdim=k)),
    'min': over(lambda x, d, k: x.amin(d, keepdim=k)),
    'any': over(each(lambda x, d: x.any(d, keepdim=True))),
    'all': over(each(lambda x, d: x.all(d, keepdim=True))),
    'countNonZero': over(lambda x, d, k: x.ne(0).sum(d, keepdim=k)),
    'nanSum': over(lambda x, d, k: x.nansum(d, keepdim=k)),
    'nanMean': over(lambda x, d, k: x.nanmean(d, keepdim=k)),
    'logSumExp': over(lambda x, d, k: x.logsumexp(d, keepdim=k)),
    'variance': spread('var'),
    'std': spread('std'),
    'norm': norm,
    'argMax': arg('argmax'),
    'argMin': arg('argmin'),
    'softmax': lambda x, axis=-1: x.softmax(axis),
    'softmin': lambda x, axis=-1: (-x).softmax(axis),
    'logSoftmax': lambda x, axis=-1: x.log_softmax(axis),
    'trace': lambda x, offset=0: x.diagonal(offset, -2, -1).sum(-1),
    'cumSum': running_total(torch.cumsum, 0),
    'cumProd': running_total(torch.cumprod, 1),
    'cumMax': running_total(lambda x, d: x.cummax(d).values),
    'cumMin': running_total(lambda x, d: x.cummin(d).values),
    'logCumSumExp': running_total(torch.logcumsumexp),
    'diff': lambda x, n=1, axis=-1, prepend=None, append=None: x.diff(n, axis, prepend, append),
    'quantile': quantile,
    'median': lambda x, axis=None, keepDims=False, interpolation='linear': quantile(x, 0.5, axis, keepDims, interpolation),
}

PLACES = [
    ([], {}), ([5], {}), ([3, 4], {}), ([3, 4], {'axis': 0}), ([3, 4], {'axis': 1, 'keepDims': True}), ([2, 3, 4], {'axis': [0, 2]}),
    ([2, 3, 4], {'axis': -2}), ([2, 3, 4], {'axis': [1, 2], 'keepDims': True}), ([2, 1, 2, 1, 3], {'axis': [0, 4]}),
    ([2, 1, 2, 2, 1, 2, 1, 2], {'axis': [1, 3, 7]}), ([70], {}), ([2, 300], {'axis': 1}),
]  # fmt: skip


def terms(shape, options):
    axis = options.get('axis')
    dims = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    return math.prod(shape[d] for d in dims)


def cases():
    for shape, options in PLACES:
        small = math.prod(shape) <= 100
        x = lambda kind=U(-2, 2), **more: T(shape, kind, **more)
        k = max(1, terms(shape, options))
        for name in ('sum', 'mean'):
            add(name, [x()], options, terms=k)
        for name in ('max', 'min'):
            add(name, [x(expand=False)], options)
        add('logSumExp', [x(U(-4, 4))], options)
        add('norm', [x(AWAY(0.2, 2))], options)
        for name in ('any', 'all'):
            add(name, [x(OF(0, 0, 0, 1) if name == 'any' else OF(1, 1, 1, 0))], options, dtypes='bool')
        add('countNonZero', [x(OF(0, 1, -2))], options, grad=False)
        if small:
            add('prod', [x(AWAY(0.5, 1.5))], options)
            if k > 1:
                add('variance', [x(expand=False)], options)
                add('std', [x(expand=False)], options)
                add('variance', [x(expand=False)], {**options, 'correction': 1})
            if shape:
                add('nanSum', [x(OF('nan', 1, 2, -3, 0.5))], options, grad=False)
                add('nanMean', [x()], options)
        if not isinstance(options.get('axis'), list) and shape:
            for name in ('argMax', 'argMin'):
                add(name, [x(expand=False)], options, grad=False)
                add(name, [x(I(-1, 1))], options, grad=False, note='ties')
            add('quantile', [x(expand=False), 0.3], options)
            add('quantile', [x(expand=False), 0.5], options)
            add('median', [x(expand=False)], options)
            add('median', [x(expand=False)], {**options, 'interpolation': 'lower'})
    add('sum', [T([0, 3])], {'axis': 0})
    add('sum', [T([0, 3])], {'axis': 1})
    add('sum', [T([0])])
    add('prod', [T([0, 2])], {'axis': 0})
    add('any', [T([0, 2])], {'axis': 0}, dtypes='bool')
    add('all', [T([0, 2])], {'axis': 0}, dtypes='bool')
    add('mean', [T([0, 2])], {'axis': 0}, special=True)
    add('countNonZero', [T([0, 2])], {'axis': 1}, grad=False)
    add('logSumExp', [T([4], LIT(1000, 999, '-inf', -1000))], special=True, note='special values')
    add('logSumExp', [T([2], LIT('-inf', '-inf'))], special=True, note='special values')
    add('logSumExp', [T([2], LIT('inf', 1))], special=True, note='special values')
    for name in ('sum', 'mean', 'max', 'min', 'prod', 'argMax', 'argMin', 'norm'):
        for values in ((1, 'nan', 3), (1, 'inf', 2), ('-inf', '-inf', 0), ('nan', 'inf', '-inf'), ('-inf', '-inf', '-inf')):
            add(name, [T([3], LIT(*values))], special=True, note='special values')
    for name in ('nanSum', 'nanMean'):
        add(name, [T([2, 3], LIT(1, 'nan', 3, 'nan', 'nan', 'nan'))], {'axis': 1}, special=True)
        add(name, [T([2, 2], LIT(1, 'inf', 'nan', 2))], special=True)
    for values in ((2, 0, 3), (0, 0, 3), (0, 0, 0), (1, 2, 0, 4)):
        add('prod', [T([len(values)], LIT(*values))], note='zeros')
        add('cumProd', [T([len(values)], LIT(*values))], {'axis': 0}, note='zeros')
    add('prod', [T([2, 3], LIT(0, 2, 3, 1, 0, 0))], {'axis': 1}, note='zeros')
    add('max', [T([4], LIT(3, 1, 3, 2))], second=False, note='ties')
    add('min', [T([2, 3], LIT(1, 1, 2, 5, 5, 5))], {'axis': 1}, second=False, note='ties')
    add('norm', [T([3], LIT(0, 0, 0))], second=False, note='at 0')
    for p in (1, 3, 2.5, 0, float('inf'), float('-inf'), 0.5, -1):
        add('norm', [T([3, 4], AWAY(0.3, 2), expand=False)], {'p': p}, grad=p != 0)
        add('norm', [T([2, 3, 2], AWAY(0.3, 2), expand=False)], {'p': p, 'axis': 1, 'keepDims': True}, grad=p != 0)
        if isinstance(p, int) or p == float('inf'):
            add('norm', [T([2, 2, 3], AWAY(0.3, 2), expand=False)], {'p': p, 'axis': [0, 2]}, grad=p != 0)
    for q in (0.0, 1.0, 0.25, 0.9):
        for how in ('linear', 'lower', 'higher', 'nearest', 'midpoint'):
            add('quantile', [T([3, 5], expand=False), q], {'axis': 1, 'interpolation': how}, grad=how != 'nearest')
    add('quantile', [T([3, 5], expand=False), [0.1, 0.5, 0.75]], {'axis': 1})
    add('quantile', [T([4, 2, 3], expand=False), [0.25, 1.0]], {'axis': 0, 'keepDims': True})
    add('quantile', [T([4, 2, 3], expand=False), 0.4], {'axis': [0, 2]})
    add('quantile', [T([4], LIT(1, 'nan', 2, 3)), 0.5], special=True)
    add('median', [T([4], LIT(1, 'nan', 2, 3))], special=True)
    add('median', [T([3], LIT('inf', '-inf', 2))], special=True)
    for name in ('softmax', 'softmin', 'logSoftmax'):
        for shape, axis in (([5], 0), ([3, 4], 1), ([3, 4], 0), ([2, 3, 4], 1), ([2, 3, 2, 2], -3), ([2, 40], 1), ([1, 1], 1)):
            add(name, [T(shape, U(-4, 4)), axis])
            add(name, [T(shape, U(-4, 4))], {'axis': axis})
        add(name, [T([3], LIT(1000, 999, -1000)), 0], special=True, note='special values')
        add(name, [T([3], LIT(1, 'nan', 2)), 0], special=True, note='special values')
        add(name, [T([3], LIT(1, '-inf', 2) if name != 'softmin' else LIT(1, 'inf', 2)), 0], special=True, note='special values')
    for shape in ([3, 3], [2, 4], [4, 2]):
        add('trace', [T(shape)])
        add('trace', [T(shape)], {'offset': 1})
        add('trace', [T(shape)], {'offset': -1})
    running()
    integers()


def running():
    for shape, axis in (([5], 0), ([3, 4], 0), ([3, 4], 1), ([2, 3, 4], -2), ([2, 70], 1), ([0, 3], 0), ([2, 1, 3, 2], 2), ([1, 5], 0)):
        o = {'axis': axis}
        n = shape[axis]
        add('cumSum', [T(shape)], o, terms=max(1, n))
        add('cumMax', [T(shape, expand=False)], o)
        add('cumMin', [T(shape, expand=False)], o)
        if n < 20:
            add('cumProd', [T(shape, AWAY(0.5, 1.5))], o)
        add('logCumSumExp', [T(shape, U(-4, 4))], o, second=n > 0, grad=n > 0)
        for turned in ({'reverse': True}, {'exclusive': True}, {'reverse': True, 'exclusive': True}):
            add('cumSum', [T(shape)], {**o, **turned}, terms=max(1, n))
            if n < 20:
                add('cumProd', [T(shape, AWAY(0.5, 1.5))], {**o, **turned})
        for name in ('cumMax', 'cumMin', 'logCumSumExp'):
            add(name, [T(shape, expand=False)], {**o, 'reverse': True}, second=n > 0, grad=n > 0)
        if n > 1:
            add('diff', [T(shape)], o)
        if 1 < n < 20:
            ends = [1 if d == axis else size for d, size in enumerate(shape)]
            add('diff', [T(shape)], {**o, 'prepend': T(ends), 'append': T(ends)})
        if n > 3:
            add('diff', [T(shape)], {'n': 2, 'axis': axis})
    for name in ('cumSum', 'cumProd', 'cumMax', 'cumMin'):
        add(name, [T([6], LIT(1, 2, 'nan', 3, 'inf', -1))], {'axis': 0}, special=True, note='special values')
        add(name, [T([5], LIT(1, '-inf', 3, 'inf', -1))], {'axis': 0}, special=True, note='special values')
    add('logCumSumExp', [T([5], LIT('-inf', '-inf', 3, 1000, -1))], {'axis': 0}, special=True, note='special values')


def integers():
    for dtype in ('int32', 'int8', 'uint8', 'int16', 'int64'):
        kind = I(0, 200) if dtype == 'uint8' else I(-100, 100)
        for shape, options in (([3, 4], {}), ([2, 3, 4], {'axis': [0, 2]}), ([3, 4], {'axis': 1, 'keepDims': True})):
            add('sum', [T(shape, kind)], options, dtypes=dtype)
            add('max', [T(shape, kind)], options, dtypes=dtype)
            add('min', [T(shape, kind)], options, dtypes=dtype)
            add('countNonZero', [T(shape, I(0, 1))], options, dtypes=dtype)
        add('prod', [T([2, 3], I(1, 4))], {'axis': 1}, dtypes=dtype)
        add('argMax', [T([4, 3], kind)], {'axis': 0}, dtypes=dtype)
        add('cumSum', [T([4, 3], I(0, 9))], {'axis': 0}, dtypes=dtype)
        add('cumMax', [T([4, 3], kind)], {'axis': 0}, dtypes=dtype)
    add('sum', [T([3, 5], I(0, 1))], {'axis': 1}, dtypes='bool')
    add('countNonZero', [T([3, 5], I(0, 1))], {'axis': 1}, dtypes='bool')
    for dtype in ('float16', 'bfloat16'):
        for shape, options in (([3, 4], {}), ([2, 3, 4], {'axis': [0, 2]}), ([200], {})):
            for name in ('sum', 'mean', 'max', 'min'):
                add(name, [T(shape, GRID(-32, 32, 16))], options, dtypes=dtype)
        add('softmax', [T([3, 4], GRID(-32, 32, 16)), 1], dtypes=dtype)
        add('logSumExp', [T([3, 4], GRID(-32, 32, 16))], {'axis': 1}, dtypes=dtype)
        for name in ('softmin', 'logSoftmax'):
            add(name, [T([2, 9], GRID(-32, 32, 16)), 1], dtypes=dtype)
        for name in ('variance', 'std', 'norm'):
            add(name, [T([3, 9], GRID(-32, 32, 16), expand=False)], {'axis': 1}, dtypes=dtype)
        add('cumSum', [T([3, 4], GRID(-8, 8, 8))], {'axis': 1}, dtypes=dtype)
