"""Convolutions, pooling, resampling, normalisation of images.

Left out, because the documented contract differs from torch there:
- ties in max pooling: both take the first, but torch walks windows its own way when a window holds NaN, so NaN has one window;
- lpPool of odd orders of negative numbers and at 0; bicubic gridSample second derivatives (none in torch).
"""

import torch
import torch.nn.functional as F

from cases import add
from draw import AWAY, GRID, I, LIT, T, U


def first(x, layout):
    return x if layout == 'nchw' else x.movedim(-1, 1)


def last(x, layout):
    return x if layout == 'nchw' else x.movedim(1, -1)


def per(v, n):
    return [v] * n if isinstance(v, (int, float)) else list(v)


def widths(padding, x, size, stride, dilation):
    """[low, high] per axis: 'same' puts the odd one at the end, as TensorFlow does."""
    n = x.dim() - 2
    if padding == 'valid':
        padding = 0
    if padding == 'same':
        pairs = []
        for i in range(n):
            span = (size[i] - 1) * dilation[i] + 1
            out = -(-x.shape[2 + i] // stride[i])
            total = max(0, (out - 1) * stride[i] + span - x.shape[2 + i])
            pairs.append([total // 2, total - total // 2])
        return pairs
    return [p if isinstance(p, list) else [p, p] for p in per(padding, n)]


def conv(rank):
    f = [F.conv1d, F.conv2d, F.conv3d][rank - 1]

    def g(x, kernel, bias=None, stride=1, padding=0, dilation=1, groups=1, layout='nchw'):
        x = first(x, layout)
        stride, dilation = per(stride, rank), per(dilation, rank)
        pairs = widths(padding, x, kernel.shape[2:], stride, dilation)
        x = F.pad(x, [w for pair in reversed(pairs) for w in pair])
        return last(f(x.contiguous(), kernel, bias, stride, 0, dilation, groups), layout)

    return g


def transposed(rank):
    f = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1]

    def g(x, kernel, bias=None, stride=1, padding=0, outputPadding=0, dilation=1, groups=1, layout='nchw'):
        return last(f(first(x, layout), kernel, bias, stride, padding, outputPadding, groups, dilation), layout)

    return g


def depthwise(x, kernel, layout='nchw', **more):
    groups = first(x, layout).shape[1]
    return conv(2)(x, kernel, groups=groups, layout=layout, **more)


def max_pool(rank):
    f = [F.max_pool1d, F.max_pool2d, F.max_pool3d][rank - 1]

    def g(x, size, stride=None, padding=0, dilation=1, ceilMode=False, returnIndices=False, layout='nchw'):
        r = f(first(x, layout), size, stride, padding, dilation, ceilMode, returnIndices)
        return [last(v, layout) for v in r] if returnIndices else last(r, layout)

    return g


def avg_pool(rank):
    f = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][rank - 1]

    def g(x, size, stride=None, padding=0, ceilMode=False, countIncludePad=True, layout='nchw'):
        return last(f(first(x, layout), size, stride, padding, ceilMode, countIncludePad), layout)

    return g


def lp_pool(x, order, size, stride=None, ceilMode=False):
    return (F.lp_pool1d if x.ndim == 3 else F.lp_pool2d)(x, float(order), size, stride, ceilMode)


def batch_norm(x, weight=None, bias=None, eps=1e-5, training=False, runningMean=None, runningVar=None, axis=1):
    x = x.movedim(axis, 1)
    keep = [None if r is None else r.detach().clone() for r in (runningMean, runningVar)]
    return F.batch_norm(x, *(keep if training else (runningMean, runningVar)), weight, bias, training, 0.1, eps).movedim(1, axis)


def layer_norm(x, weight=None, bias=None, eps=1e-5, normalizedShape=None):
    shape = [x.shape[-1]] if normalizedShape is None else per(normalizedShape, 1)
    return F.layer_norm(x, shape, weight, bias, eps)


def rms_norm(x, weight=None, eps=1e-5, normalizedShape=None):
    dims = [-1] if normalizedShape is None else list(range(-len(per(normalizedShape, 1)), 0))
    y = x * torch.rsqrt(x.square().mean(dims, keepdim=True) + eps)
    return y if weight is None else y * weight


def interpolate(x, size=None, scaleFactor=None, mode='nearest', alignCorners=None, layout='nchw'):
    how = {'nearestExact': 'nearest-exact'}.get(mode, mode)
    # The size counts, not the factor, where the factor is rounded away.
    return last(F.interpolate(first(x, layout), size, scaleFactor, how, alignCorners, recompute_scale_factor=None), layout)


def grid_sample(x, grid, mode='bilinear', paddingMode='zeros', alignCorners=False):
    return F.grid_sample(x, grid, mode, paddingMode, alignCorners)


def unpool(x, indices, size, stride=None, padding=0, outputSize=None):
    f = {3: F.max_unpool1d, 4: F.max_unpool2d, 5: F.max_unpool3d}[x.ndim]
    return f(x, indices.to(torch.int64), size, stride, padding, outputSize)


def patches(x, size, stride=1, padding=0, dilation=1):
    return F.unfold(x, size, dilation, padding, stride)


def unpatches(x, out, size, stride=1, padding=0, dilation=1):
    return F.fold(x, out, size, dilation, padding, stride)


def local_response(x, size, alpha=1e-4, beta=0.75, k=1.0):
    return F.local_response_norm(x, size, alpha, beta, k)


CALLS = {
    **{f'conv{r}d': conv(r) for r in (1, 2, 3)},
    **{f'convTranspose{r}d': transposed(r) for r in (1, 2, 3)},
    **{f'maxPool{r}d': max_pool(r) for r in (1, 2, 3)},
    **{f'avgPool{r}d': avg_pool(r) for r in (1, 2, 3)},
    'depthwiseConv2d': depthwise,
    'globalAvgPool2d': lambda x, keepDims=False, layout='nchw': first(x, layout).mean([2, 3], keepdim=keepDims),
    'adaptiveAvgPool1d': F.adaptive_avg_pool1d,
    'adaptiveAvgPool2d': F.adaptive_avg_pool2d,
    'adaptiveAvgPool3d': F.adaptive_avg_pool3d,
    'adaptiveMaxPool1d': F.adaptive_max_pool1d,
    'adaptiveMaxPool2d': F.adaptive_max_pool2d,
    'adaptiveMaxPool3d': F.adaptive_max_pool3d,
    'lpPool1d': lp_pool,
    'lpPool2d': lp_pool,
    **{f'maxUnpool{r}d': unpool for r in (1, 2, 3)},
    'batchNorm': batch_norm,
    'layerNorm': layer_norm,
    'rmsNorm': rms_norm,
    'groupNorm': lambda x, groups, weight=None, bias=None, eps=1e-5: F.group_norm(x, groups, weight, bias, eps),
    'instanceNorm': lambda x, weight=None, bias=None, eps=1e-5: F.instance_norm(x, None, None, weight, bias, True, 0.1, eps),
    'localResponseNorm': local_response,
    'interpolate': interpolate,
    'gridSample': grid_sample,
    'affineGrid': lambda theta, size, alignCorners=False: F.affine_grid(theta, size, alignCorners),
    'unfold': patches,
    'fold': unpatches,
    'pixelShuffle': F.pixel_shuffle,
    'pixelUnshuffle': F.pixel_unshuffle,
}


def cases():
    convolutions()
    pooling()
    normalization()
    resampling()


def image(s, **more):
    return T(s, U(-2, 2), **more)


def convolutions():
    def add_conv(op, x, w, o=None, **more):
        per_output = 1
        for n in w[1:]:
            per_output *= n
        add(op, [image(x), image(w)], o or {}, terms=per_output + 1, **more)

    for o in ({}, {'stride': 2}, {'padding': 1}, {'dilation': 2, 'padding': 2}, {'padding': 'same'}, {'stride': 2, 'padding': 'same'}, {'padding': [[2, 0]]}, {'bias': T([3])}):
        add_conv('conv1d', [2, 2, 8], [3, 2, 3], o)
    add_conv('conv1d', [1, 4, 7], [4, 2, 2], {'groups': 2})
    add_conv('conv1d', [2, 7, 2], [3, 2, 3], {'layout': 'nhwc', 'padding': 1})
    add_conv('conv1d', [1, 1, 40], [1, 1, 33], {'padding': 5})
    add('conv1d', [T([0, 2, 8], layout='plain'), image([3, 2, 3], layout='plain')], grad=False)
    for o in (
        {}, {'stride': 2}, {'stride': [2, 1]}, {'padding': 1}, {'padding': [1, 0]}, {'dilation': 2, 'padding': 2}, {'dilation': [1, 2]}, {'padding': 'same'}, {'padding': 'valid'},
        {'stride': [2, 3], 'padding': 'same'}, {'padding': [[1, 0], [0, 2]]}, {'bias': T([2])}, {'stride': 2, 'padding': 1, 'dilation': 2, 'bias': T([2])},
    ):  # fmt: skip
        add_conv('conv2d', [1, 2, 6, 5], [2, 2, 3, 2], o)
    add_conv('conv2d', [2, 4, 4, 5], [4, 2, 2, 3], {'groups': 2, 'padding': 1})
    add_conv('conv2d', [1, 3, 4, 4], [3, 1, 3, 3], {'groups': 3, 'padding': 1, 'bias': T([3])})
    add_conv('conv2d', [2, 5, 4, 3], [2, 3, 3, 3], {'layout': 'nhwc', 'padding': 1})
    add_conv('conv2d', [2, 5, 4, 3], [2, 3, 1, 1], {'layout': 'nhwc', 'stride': 2, 'bias': T([2])})
    add_conv('conv2d', [1, 3, 5, 5], [4, 3, 1, 1])
    add_conv('conv2d', [1, 8, 9, 9], [9, 8, 3, 3], {'padding': 1}, second=False)
    for lx, lw in (('transposed', 'plain'), ('flipped', 'transposed'), ('strided', 'sliced'), ('expanded', 'flipped')):
        add('conv2d', [T([2, 2, 5, 4], layout=lx), T([3, 2, 2, 2], layout=lw)], note=f'{lx} {lw}', terms=9)
    for o in ({}, {'padding': 1}, {'stride': 2}, {'dilation': [2, 1, 1]}, {'bias': T([2])}):
        add_conv('conv3d', [1, 2, 4, 3, 4], [2, 2, 2, 2, 2], o)
    add_conv('conv3d', [1, 2, 3, 3, 3], [2, 1, 2, 2, 2], {'groups': 2})
    for o in ({}, {'stride': 2}, {'padding': 1}, {'bias': T([4])}, {'dilation': 2}):
        add_conv('depthwiseConv2d', [1, 2, 5, 5], [4, 1, 2, 2], o)
    add_conv('depthwiseConv2d', [1, 4, 4, 3], [3, 1, 3, 3], {'layout': 'nhwc', 'padding': 'same'})
    for o in ({}, {'stride': 2}, {'stride': 2, 'padding': 1}, {'stride': 3, 'outputPadding': 1}, {'dilation': 2}, {'bias': T([3])}):
        add_conv('convTranspose1d', [2, 2, 5], [2, 3, 3], o)
        add_conv('convTranspose2d', [1, 2, 3, 4], [2, 3, 3, 2], o)
    add_conv('convTranspose1d', [1, 4, 4], [4, 2, 3], {'groups': 2})
    add_conv('convTranspose2d', [1, 4, 3, 3], [4, 1, 2, 2], {'groups': 2, 'stride': 2})
    add_conv('convTranspose2d', [1, 3, 4, 2], [2, 2, 3, 3], {'layout': 'nhwc', 'stride': 2, 'padding': 1})
    add_conv('convTranspose2d', [1, 2, 3, 3], [2, 2, 3, 3], {'stride': [2, 1], 'padding': [1, 0], 'outputPadding': [1, 0], 'bias': T([2])})
    add_conv('convTranspose3d', [1, 2, 2, 3, 2], [2, 2, 2, 2, 2], {'stride': 2})
    add_conv('convTranspose3d', [1, 2, 2, 2, 2], [2, 1, 3, 2, 2], {'padding': [1, 0, 0], 'bias': T([1])})
    for s, k, o in (([1, 2, 4, 5], [2, 3], {}), ([2, 1, 5, 5], 3, {'padding': 1}), ([1, 2, 5, 4], 2, {'stride': 2}), ([1, 1, 6, 5], [2, 2], {'dilation': 2, 'padding': [1, 0]})):
        add('unfold', [T(s), k], o)
    for s, out, k, o in (([1, 8, 6], [3, 4], 2, {}), ([2, 9, 9], [3, 3], 3, {'padding': 1}), ([1, 4, 6], [4, 6], 2, {'stride': 2})):
        add('fold', [T(s), out, k], o)
    for s, r in (([1, 4, 2, 3], 2), ([2, 9, 1, 2], 3), ([8, 2, 2], 2)):
        add('pixelShuffle', [T(s), r])
    for s, r in (([1, 1, 4, 6], 2), ([2, 3, 6], 3)):
        add('pixelUnshuffle', [T(s), r])
    for dtype in ('float16', 'bfloat16'):
        add('conv2d', [T([1, 2, 4, 4], GRID(-16, 16, 16)), T([2, 2, 3, 3], GRID(-16, 16, 16))], {'padding': 1}, dtypes=dtype)


def pooling():
    for o in ({}, {'stride': 1}, {'padding': 1}, {'stride': 2, 'ceilMode': True}, {'dilation': 2, 'stride': 1}):
        add('maxPool1d', [T([2, 2, 7], expand=False), 3], o)
        add('maxPool2d', [T([1, 2, 6, 7], expand=False), 3], o)
    add('maxPool2d', [T([1, 2, 6, 5], expand=False), [2, 3]], {'stride': [1, 2], 'padding': [0, 1]})
    add('maxPool2d', [T([2, 5, 4, 2], expand=False), 2], {'layout': 'nhwc'})
    for o in ({}, {'stride': 1}, {'padding': 1}):
        add('maxPool2d', [T([1, 2, 6, 7], expand=False), 2], {**o, 'returnIndices': True})
        add('maxPool1d', [T([1, 2, 6], expand=False), 2], {**o, 'returnIndices': True})
    add('maxPool2d', [T([1, 1, 4, 4], I(0, 2), expand=False), 2], second=False, note='ties')
    add('maxPool2d', [T([1, 1, 2, 4], LIT(1, 'nan', 3, '-inf', 2, 0, '-inf', '-inf')), 2], special=True)
    add('maxPool3d', [T([1, 2, 4, 3, 4], expand=False), 2])
    add('maxPool3d', [T([1, 1, 3, 4, 3], expand=False), [2, 2, 1]], {'stride': 1, 'returnIndices': True})
    for o in ({}, {'stride': 1}, {'padding': 1}, {'padding': 1, 'countIncludePad': False}, {'stride': 2, 'ceilMode': True}, {'stride': 2, 'ceilMode': True, 'padding': 1, 'countIncludePad': False}):
        add('avgPool1d', [T([2, 2, 8]), 3], o, terms=3)
        add('avgPool2d', [T([1, 2, 6, 7]), 3], o, terms=9)
    add('avgPool2d', [T([1, 2, 6, 5]), [2, 3]], {'stride': [1, 2], 'padding': [0, 1]}, terms=6)
    add('avgPool2d', [T([1, 4, 5, 2]), 2], {'layout': 'nhwc'}, terms=4)
    add('avgPool3d', [T([1, 2, 4, 3, 4]), 2], terms=8)
    add('avgPool3d', [T([1, 1, 4, 3, 4]), [2, 3, 2]], {'stride': 1, 'padding': [0, 1, 1]}, terms=12)
    add('globalAvgPool2d', [T([2, 3, 4, 5])], terms=20)
    add('globalAvgPool2d', [T([2, 4, 5, 3])], {'layout': 'nhwc'}, terms=20)
    add('globalAvgPool2d', [T([2, 3, 2, 2])], {'keepDims': True}, terms=4)
    for n in (1, 3, 4, 7):
        add('adaptiveAvgPool1d', [T([2, 2, 7]), n])
        add('adaptiveAvgPool2d', [T([1, 2, 7, 5]), n])
        add('adaptiveMaxPool2d', [T([1, 2, 7, 5], expand=False), n])
    for n in ([2, 3], [5, 1]):
        add('adaptiveAvgPool2d', [T([1, 2, 7, 5]), n])
        add('adaptiveMaxPool2d', [T([1, 2, 7, 5], expand=False), n])
    for n in (1, 3):
        add('adaptiveMaxPool1d', [T([2, 2, 7], expand=False), n])
    for n in (2, [3, 1, 2]):
        add('adaptiveAvgPool3d', [T([1, 2, 4, 3, 5]), n])
        add('adaptiveMaxPool3d', [T([1, 2, 4, 3, 5], expand=False), n])
    for order in (1, 2, 3):
        add('lpPool1d', [T([2, 2, 7], U(0.2, 2)), order, 3], {'stride': 2})
        add('lpPool2d', [T([1, 2, 5, 6], U(0.2, 2)), order, 2])
        add('lpPool2d', [T([1, 2, 5, 6], U(0.2, 2)), order, 3], {'stride': 1})
    add('lpPool2d', [T([1, 2, 4, 4]), 2, 2])
    add('maxUnpool1d', [T([1, 2, 2]), T([1, 2, 2], LIT(0, 3, 1, 2), dtype='int32'), 2])
    add('maxUnpool3d', [T([1, 1, 1, 2, 1]), T([1, 1, 1, 2, 1], LIT(3, 14), dtype='int32'), 2])
    add('maxUnpool2d', [T([1, 1, 2, 2]), T([1, 1, 2, 2], LIT(1, 6, 8, 15), dtype='int32'), 2])
    add('maxUnpool2d', [T([1, 2, 2, 2]), T([1, 2, 2, 2], LIT(0, 3, 12, 9, 5, 2, 13, 11), dtype='int32'), 2])


def normalization():
    affine = lambda n: {'weight': T(n), 'bias': T(n)}
    for s in ([4, 3], [3, 2, 4], [2, 3, 2, 3]):
        c = s[1]
        add('batchNorm', [T(s, expand=False)], {'training': True})
        add('batchNorm', [T(s, expand=False)], {'training': True, **affine([c]), 'eps': 0.01})
        stats = lambda: {'runningMean': T([c], grad=False), 'runningVar': T([c], U(0.5, 2), grad=False)}
        add('batchNorm', [T(s)], stats())
        add('batchNorm', [T(s)], {**stats(), **affine([c])})
    add('batchNorm', [T([3, 4, 2], expand=False)], {'training': True, 'axis': 2, **affine([2])})
    for s, n in (([4, 6], None), ([2, 3, 4], None), ([2, 3, 4], [3, 4]), ([3, 5], 5)):
        own = [s[-1]] if n is None else [n] if isinstance(n, int) else n
        o = {} if n is None else {'normalizedShape': n}
        add('layerNorm', [T(s, expand=False, layout='plain' if s[0] < 3 else None)], o)
        add('layerNorm', [T(s, expand=False)], {**o, **affine(own), 'eps': 0.001})
        add('rmsNorm', [T(s)], {**o, 'eps': 1e-5})
        add('rmsNorm', [T(s)], {**o, 'weight': T(own), 'eps': 0.001})
    for s, g in (([2, 4, 3], 2), ([2, 4, 2, 3], 4), ([1, 6, 2, 2], 3), ([2, 4, 3], 1)):
        add('groupNorm', [T(s, expand=False)], {'groups': g})
        add('groupNorm', [T(s, expand=False)], {'groups': g, **affine([s[1]])})
    for dtype in ('float16', 'bfloat16'):
        add('layerNorm', [T([3, 8], GRID(-32, 32, 16), expand=False)], dtypes=dtype)
        add('rmsNorm', [T([3, 8], GRID(-32, 32, 16), expand=False)], {'eps': 1e-5}, dtypes=dtype)
        add('batchNorm', [T([6, 3], GRID(-32, 32, 16), expand=False)], {'training': True}, dtypes=dtype)
    for s in ([2, 3, 4], [2, 2, 3, 3]):
        add('instanceNorm', [T(s, expand=False)])
        add('instanceNorm', [T(s, expand=False)], {**affine([s[1]]), 'eps': 0.01})
    for n in (1, 3, 4):
        add('localResponseNorm', [T([2, 5, 3])], {'size': n})
        add('localResponseNorm', [T([1, 4, 2, 3])], {'size': n, 'alpha': 0.5, 'beta': 0.6, 'k': 2.0})


def resampling():
    sizes = (([1, 2, 4], [7]), ([1, 2, 5], [3]), ([1, 2, 3, 4], [6, 8]), ([1, 1, 5, 4], [3, 7]), ([1, 2, 2, 3], [4, 5]), ([2, 1, 3, 3], [3, 3]), ([1, 1, 2, 3, 2], [4, 3, 5]))
    for s, to in sizes:
        add('interpolate', [T(s)], {'size': to, 'mode': 'nearest'})
        add('interpolate', [T(s)], {'size': to, 'mode': 'nearestExact'})
        how = {3: 'linear', 4: 'bilinear', 5: 'trilinear'}[len(s)]
        for align in (False, True):
            add('interpolate', [T(s)], {'size': to, 'mode': how, 'alignCorners': align})
            if len(s) == 4:
                add('interpolate', [T(s)], {'size': to, 'mode': 'bicubic', 'alignCorners': align})
    for how in ('nearest', 'bilinear', 'bicubic'):
        add('interpolate', [T([1, 2, 3, 4])], {'scaleFactor': 2.0, 'mode': how})
        add('interpolate', [T([1, 1, 6, 4])], {'scaleFactor': 0.5, 'mode': how})
        add('interpolate', [T([1, 3, 4, 2])], {'size': [5, 6], 'mode': how, 'layout': 'nhwc'})
    for mode in ('bilinear', 'nearest', 'bicubic'):
        for padding in ('zeros', 'border', 'reflection'):
            for align in (False, True):
                o = {'mode': mode, 'paddingMode': padding, 'alignCorners': align}
                add('gridSample', [T([1, 2, 4, 5]), T([1, 3, 2, 2], U(-1.3, 1.3), expand=False)], o, second=False)
                add('gridSample', [T([2, 1, 3, 3]), T([2, 2, 3, 2], U(-0.95, 0.95), expand=False)], o, second=False)
    for padding in ('zeros', 'border', 'reflection'):
        add('gridSample', [T([1, 2, 3, 2, 3]), T([1, 2, 2, 2, 3], U(-1.2, 1.2), expand=False)], {'paddingMode': padding}, second=False)
    for align in (False, True):
        add('affineGrid', [T([1, 3, 4]), [1, 1, 2, 3, 2]], {'alignCorners': align})
        add('affineGrid', [T([1, 2, 3]), [1, 1, 3, 4]], {'alignCorners': align})
        add('affineGrid', [T([2, 2, 3]), [2, 3, 2, 2]], {'alignCorners': align})
