"""Sizes at which engines cut work into tiles, vectors, chunks and steps. Inputs cost nothing in the file, so results are kept small."""

from cases import add
from draw import AWAY, GRID, I, T, U

CALLS = {}


def cases():
    reductions()
    products()
    windows()
    lines()


def reductions():
    for shape, axis in (([5000], 0), ([8200], 0), ([17, 301], 0), ([17, 301], 1), ([300, 7], 0), ([6, 7, 8, 9], [0, 2]), ([6, 7, 8, 9], [1, 3]), ([4, 2100], 1), ([2050, 3], 0)):
        o = {'axis': axis}
        k = 1
        for d in [axis] if isinstance(axis, int) else axis:
            k *= shape[d]
        for layout in ('plain', 'transposed', 'flipped'):
            x = lambda kind=U(-1, 1): T(shape, kind, layout=layout)
            if layout != 'plain' and len(shape) == 1:
                continue
            add('sum', [x()], o, grad=False, terms=k, note=layout)
            add('max', [x()], o, grad=False, note=layout)
        x = lambda kind=U(-1, 1): T(shape, kind, expand=False)
        add('mean', [x()], o, grad=False, terms=k)
        add('norm', [x()], o, grad=False, terms=k)
        add('min', [x()], o, grad=False)
        add('logSumExp', [x(U(-9, 9))], o, grad=False)
        add('variance', [x()], o, grad=False)
        add('countNonZero', [x(I(-1, 1))], o, grad=False)
        add('sum', [x(I(-1000, 1000))], o, dtypes='int32')
        if isinstance(axis, int):
            add('argMax', [x()], o, grad=False)
            add('argMin', [x(I(-40, 40))], o, grad=False)
    for op in ('sum', 'max', 'norm'):
        add(op, [T([3, 130])], {'axis': 1}, second=False, **({'terms': 130} if op == 'sum' else {}))
        add(op, [T([130, 3])], {'axis': 0}, second=False, **({'terms': 130} if op == 'sum' else {}))
    for op in ('exp', 'tanh', 'sigmoid', 'erf', 'sqrt', 'log', 'sin', 'gelu'):
        add(op, [T([3, 67], U(0.1, 3))], second=False)
    add('add', [T([70, 1]), T([1, 33])], grad=False)
    add('mul', [T([2, 1, 65]), T([7, 1])], second=False)
    for op in ('softmax', 'logSoftmax'):
        add(op, [T([2, 700], U(-5, 5)), 1], second=False)
        add(op, [T([700, 2], U(-5, 5)), 0], grad=False)
    add('layerNorm', [T([3, 200], expand=False)], second=False)
    add('rmsNorm', [T([3, 200], expand=False)], {'eps': 1e-5}, second=False)
    add('batchNorm', [T([20, 3, 9], expand=False)], {'training': True}, second=False)


def products():
    for a, b in (([33, 70], [70, 20]), ([64, 64], [64, 64]), ([1, 300], [300, 17]), ([65, 3], [3, 65]), ([3, 1200], [1200, 2]), ([20, 257], [257]), ([2, 17, 40], [2, 40, 19]), ([5, 8, 33], [33, 9])):
        for la, lb in (('plain', 'plain'), ('transposed', 'plain'), ('plain', 'transposed'), ('strided', 'flipped')):
            if len(b) == 1 and lb == 'transposed':
                continue
            add('matmul', [T(a, U(-1, 1), layout=la), T(b, U(-1, 1), layout=lb)], grad=False, terms=a[-1], note=f'{la} {lb}')
    add('matmul', [T([18, 33], U(-1, 1)), T([33, 17], U(-1, 1))], second=False, terms=33)
    add('matmul', [T([40, 40], I(-50, 50)), T([40, 40], I(-50, 50))], dtypes='int32')
    add('einsum', ['bhqd,bhkd->bhqk', T([2, 3, 9, 16], U(-1, 1)), T([2, 3, 10, 16], U(-1, 1))], grad=False, terms=16)
    add('scaledDotProductAttention', [T([2, 2, 20, 8]), T([2, 2, 30, 8]), T([2, 2, 30, 8])], grad=False)
    add('scaledDotProductAttention', [T([1, 2, 17, 8]), T([1, 2, 17, 8]), T([1, 2, 17, 8])], {'causal': True}, second=False)
    add('cdist', [T([20, 9]), T([17, 9], U(1, 3))], grad=False)
    for dtype in ('float16', 'bfloat16'):
        add('matmul', [T([9, 300], GRID(-16, 16, 16)), T([300, 7], GRID(-16, 16, 16))], dtypes=dtype)


def windows():
    def one(op, x, w, o=None, **more):
        k = 1
        for n in w[1:]:
            k *= n
        add(op, [T(x, U(-1, 1)), T(w, U(-1, 1))], o or {}, terms=k + 1, **more)

    for o in ({'padding': 1}, {'padding': 1, 'stride': 2}, {'padding': 'same', 'dilation': 2}, {'bias': T([17])}):
        one('conv2d', [1, 5, 14, 13], [17, 5, 3, 3], o, grad=False)
    one('conv2d', [2, 12, 9, 10], [8, 12, 1, 1], {}, grad=False)
    one('conv2d', [1, 16, 10, 9], [16, 4, 3, 3], {'groups': 4, 'padding': 1}, grad=False)
    one('conv2d', [1, 13, 14, 5], [9, 5, 3, 3], {'layout': 'nhwc', 'padding': 1}, grad=False)
    one('conv2d', [2, 6, 8, 8], [7, 6, 3, 3], {'padding': 1}, second=False)
    one('depthwiseConv2d', [1, 19, 9, 8], [19, 1, 3, 3], {'padding': 1}, grad=False)
    one('conv1d', [2, 9, 70], [6, 9, 5], {'padding': 2}, grad=False)
    one('conv3d', [1, 3, 6, 7, 8], [5, 3, 3, 3, 3], {'padding': 1}, grad=False)
    one('convTranspose2d', [1, 9, 6, 7], [9, 5, 3, 3], {'stride': 2, 'padding': 1, 'outputPadding': 1}, grad=False)
    add('maxPool2d', [T([1, 3, 20, 21], expand=False), 3], {'stride': 2, 'padding': 1}, grad=False)
    add('avgPool2d', [T([1, 3, 20, 21]), 3], {'stride': 2, 'padding': 1}, grad=False, terms=9)
    add('interpolate', [T([1, 2, 13, 11])], {'size': [21, 24], 'mode': 'bilinear'}, grad=False)


def lines():
    for n in (1000, 3000):
        add('sort', [T([n], expand=False)], grad=False)
        add('argSort', [T([n], I(0, 50))], grad=False)
        add('cumSum', [T([n])], {'axis': 0}, grad=False, terms=n)
        add('cumMax', [T([n])], {'axis': 0}, grad=False)
        add('topK', [T([n], expand=False), 10], {'axis': 0}, grad=False)
        add('unique', [T([n], I(0, 60))], grad=False)
        add('histogram', [T([n], U(-2, 2))], {'bins': 16, 'range': [-2, 2]}, grad=False)
        add('scatterAdd', [T([40]), T([n], I(0, 39), dtype='int32'), T([n]), 0], grad=False)
        add('median', [T([n], expand=False)], {'axis': 0}, grad=False)
    add('sort', [T([5, 400], expand=False)], {'axis': 1, 'descending': True}, grad=False)
    add('sort', [T([1500], I(-10000, 10000))], dtypes='int32')
    add('cumSum', [T([300, 5])], {'axis': 0}, grad=False, terms=300)
    add('cumProd', [T([2, 100], AWAY(0.9, 1.1))], {'axis': 1}, second=False)
    add('sort', [T([200], expand=False)], second=False)
    add('embedding', [T([9], I(0, 999), dtype='int32'), T([1000, 12])], grad=False)
    add('gather', [T([2000]), T([100], I(0, 1999), dtype='int32'), 0], grad=False)
    add('concat', [[T([3, 50]), T([3, 70])], 1], second=False)
    add('permute', [T([9, 8, 17]), [2, 0, 1]], grad=False)
