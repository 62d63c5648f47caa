"""Movement and joining: other shapes, parts, borders, diagonals, tensors put together."""

import torch
import torch.nn.functional as F

from cases import add
from draw import GRID, I, OF, T


def slice_(x, specs):
    for axis, spec in reversed(list(enumerate(specs))):
        if spec is None:
            continue
        if isinstance(spec, int):
            x = x.select(axis, spec)
            continue
        step = spec.get('step', 1)
        n = x.shape[axis]
        picked = list(range(n))[slice(spec.get('start'), spec.get('stop'), step)]
        x = x.index_select(axis, torch.tensor(picked, dtype=torch.int64))
    return x


def axis_list(axis):
    return [axis] if isinstance(axis, int) else list(axis)


def pad(x, widths, mode='constant', value=0):
    n = x.dim()
    if isinstance(widths, int):
        widths = [[widths, widths]] * n
    elif isinstance(widths[0], int):
        widths = [widths] * n
    if mode == 'constant':
        return F.pad(x, [w for pair in reversed(widths) for w in pair], value=value)
    for axis, (low, high) in enumerate(widths):
        size = x.shape[axis]
        at = []
        for i in range(-low, size + high):
            if mode == 'replicate':
                j = min(max(i, 0), size - 1)
            elif mode == 'circular':
                j = i % size
            elif mode == 'reflect':
                j = -i if i < 0 else i if i < size else 2 * (size - 1) - i
            else:
                j = -1 - i if i < 0 else i if i < size else 2 * size - 1 - i
            at.append(j)
        x = x.index_select(axis, torch.tensor(at, dtype=torch.int64))
    return x


CALLS = {
    'reshape': lambda x, shape: x.reshape(shape),
    'flatten': lambda x, start=0, end=-1: x.flatten(start, end),
    'unflatten': lambda x, axis, sizes: x.unflatten(axis, sizes),
    'permute': lambda x, axes: x.permute(axes),
    'transpose': lambda x, a=-2, b=-1: x.transpose(a, b),
    'moveAxis': lambda x, a, b: x.movedim(a, b),
    'squeeze': lambda x, axis=None: x.squeeze() if axis is None else x.squeeze(axis),
    'unsqueeze': lambda x, axis: x.unsqueeze(axis),
    'expand': lambda x, shape: x.expand(shape),
    'broadcastTo': lambda x, shape: x.broadcast_to(shape),
    'tile': lambda x, repeats: x.tile(repeats),
    'repeat': lambda x, repeats: x.repeat(repeats),
    'repeatInterleave': lambda x, n, axis=None: x.repeat_interleave(n, dim=axis),
    'flip': lambda x, axis=None: x.flip(list(range(x.dim())) if axis is None else axis_list(axis)),
    'roll': lambda x, shift, axis=None: x.roll(shift, axis),
    'rot90': lambda x, turns=1, axes=(0, 1): x.rot90(turns, axes),
    'concat': lambda xs, axis=0: torch.cat(xs, axis),
    'stack': lambda xs, axis=0: torch.stack(xs, axis),
    'split': lambda x, size, axis=0: list(x.split(size, axis)),
    'chunk': lambda x, n, axis=0: list(x.chunk(n, axis)),
    'unbind': lambda x, axis=0: list(x.unbind(axis)),
    'slice': slice_,
    'narrow': lambda x, axis, start, length: x.narrow(axis, start, length),
    'select': lambda x, axis, i: x.select(axis, i),
    'pad': pad,
    'diagonal': lambda x, offset=0, axis1=-2, axis2=-1: x.diagonal(offset, axis1, axis2),
    'diag': lambda x, offset=0: x.diag(offset),
    'diagEmbed': lambda x, offset=0, axis1=-2, axis2=-1: x.diag_embed(offset, axis1, axis2),
    'tril': lambda x, diagonal=0: x.tril(diagonal),
    'triu': lambda x, diagonal=0: x.triu(diagonal),
    'meshgrid': lambda xs, indexing='xy': list(torch.meshgrid(*xs, indexing=indexing)),
    'oneHot': lambda x, n, dtype=None: F.one_hot(x.to(torch.int64), n).to(torch.float32),
    'maskedFill': lambda x, mask, value: x.masked_fill(mask, value),
}  # fmt: skip


def cases():
    shapes()
    parts()
    joins()
    for dtype in ('int8', 'int16', 'int32', 'int64', 'uint8', 'bool', 'float16', 'bfloat16'):
        kind = I(0, 1) if dtype == 'bool' else GRID(-8, 8, 4) if 'float' in dtype else I(0, 100)
        add('permute', [T([2, 3, 4], kind), [2, 0, 1]], dtypes=dtype)
        add('concat', [[T([2, 3], kind), T([1, 3], kind)]], dtypes=dtype)
        add('slice', [T([5, 4], kind), [{'step': 2}, {'start': -1, 'stop': None, 'step': -1}]], dtypes=dtype)
        add('flip', [T([3, 4], kind), 1], dtypes=dtype)
        add('pad', [T([2, 3], kind), [[1, 0], [0, 2]]], dtypes=dtype)
        add('tile', [T([2, 3], kind), [2, 2]], dtypes=dtype)
        add('reshape', [T([4, 3], kind), [2, 6]], dtypes=dtype)


def shapes():
    for s, to in (([2, 6], [3, 4]), ([12], [2, 3, 2]), ([], [1, 1]), ([2, 3, 4], [-1]), ([2, 3, 4], [4, -1]), ([0, 4], [2, 0, 3]), ([2, 2, 2, 2], [4, 1, 4]), ([1, 2, 1, 2, 1, 2, 1, 2], [4, 4])):
        add('reshape', [T(s), to])
    add('flatten', [T([2, 3, 4])])
    add('flatten', [T([2, 3, 4, 2])], {'start': 1, 'end': 2})
    add('flatten', [T([])])
    add('unflatten', [T([2, 12]), 1, [3, 4]])
    for s, a in (([2, 3], [1, 0]), ([2, 3, 4], [2, 0, 1]), ([2, 1, 3, 2], [3, 1, 0, 2]), ([0, 2, 3], [1, 0, 2]), ([2, 1, 2, 1, 2, 1, 2, 1], [7, 0, 6, 1, 5, 2, 4, 3])):
        add('permute', [T(s), a])
    add('transpose', [T([2, 3, 4])])
    add('transpose', [T([2, 3, 4]), 0, 2])
    add('transpose', [T([2, 3, 4]), -3, -2])
    add('moveAxis', [T([2, 3, 4]), 0, -1])
    add('moveAxis', [T([2, 3, 4, 2]), [0, 1], [-1, 0]])
    add('squeeze', [T([1, 2, 1, 3])])
    add('squeeze', [T([1, 2, 1, 3]), 0])
    add('squeeze', [T([1, 2, 1, 3]), -2])
    for axis in (0, 1, 2, -1):
        add('unsqueeze', [T([2, 3]), axis])
    for name in ('expand', 'broadcastTo'):
        for s, to in (([3], [2, 3]), ([2, 1], [2, 4]), ([], [2, 2]), ([1, 3, 1], [2, 3, 2]), ([1, 1], [0, 3]), ([2, 1, 2, 1], [2, 1, 2, 1, 2, 3])):
            if name == 'expand' and len(s) < len(to) and 0 in to:
                continue
            add(name, [T(s), to])
    for name in ('tile', 'repeat'):
        for s, r in (([3], [2]), ([2, 3], [1, 2]), ([2, 3], [2, 1, 3]), ([2, 2], [3, 3])):
            add(name, [T(s), r])
    add('repeatInterleave', [T([2, 3]), 2], {'axis': 1})
    add('repeatInterleave', [T([2, 3]), 3], {'axis': 0})
    add('flip', [T([2, 3, 2])])
    for axis in (0, 1, [0, 2], -1):
        add('flip', [T([2, 3, 2]), axis])
    add('roll', [T([7]), 3])
    add('roll', [T([2, 3]), 2])
    add('roll', [T([4, 3]), -1, 0])
    add('roll', [T([4, 3]), [1, 2], [0, 1]])
    add('roll', [T([4, 3]), 9, 1])
    for turns in (0, 1, 2, 3, -1, 5):
        add('rot90', [T([2, 3]), turns])
    add('rot90', [T([2, 3, 4]), 1, [1, 2]])
    add('rot90', [T([2, 3, 4]), 1, [2, 0]])


def parts():
    r = lambda start=None, stop=None, step=1: {k: v for k, v in (('start', start), ('stop', stop), ('step', step)) if v is not None}
    for s, specs in (
        ([7], [r(1, 5)]), ([7], [r(None, None, 2)]), ([7], [r(None, None, -1)]), ([7], [r(5, 1, -2)]), ([7], [r(-3)]), ([7], [r(None, -2)]),
        ([4, 5], [r(1, 3), r(None, None, 2)]), ([4, 5], [1]), ([4, 5], [-1, r(1, 4)]), ([4, 5], [None, 2]), ([4, 5], [r(3, None, -1), r(4, 0, -3)]),
        ([3, 4, 5], [r(0, 2), None, r(None, None, -2)]), ([3, 4, 5], [0, r(2), -1]), ([4], [r(2, 2)]), ([2, 3, 2, 3], [None, r(1), 1, r(None, None, 2)]),
    ):  # fmt: skip
        add('slice', [T(s), specs])
    add('narrow', [T([4, 5]), 1, 1, 3])
    add('narrow', [T([4, 5]), 0, 0, 2])
    add('select', [T([4, 5]), 0, 2])
    add('select', [T([4, 5, 2]), -2, -1])
    for s, w in (([3], [[1, 2]]), ([2, 3], [[1, 0], [0, 2]]), ([2, 3], 1), ([2, 2, 3], [[0, 1], [1, 0], [2, 2]]), ([2, 3], [2, 1]), ([0, 2], [[1, 1], [0, 0]])):
        add('pad', [T(s), w])
        add('pad', [T(s), w], {'value': -1.5})
    for mode in ('reflect', 'symmetric', 'replicate', 'circular'):
        for s, w in (([4], [[1, 2]]), ([3, 4], [[1, 2], [0, 3]]), ([2, 3, 4], [[0, 0], [2, 1], [1, 1]]), ([4, 4], [[2, 2], [3, 1]])):
            add('pad', [T(s), w], {'mode': mode})
    for o in (-1, 0, 1, 2):
        add('diagonal', [T([3, 4])], {'offset': o})
        add('diag', [T([3, 4])], {'offset': o})
        add('diag', [T([3])], {'offset': o})
        add('diagEmbed', [T([2, 3])], {'offset': o})
        add('tril', [T([3, 4])], {'diagonal': o})
        add('triu', [T([2, 4, 3])], {'diagonal': o})
    add('diagonal', [T([2, 3, 4])], {'axis1': 0, 'axis2': 2})
    add('diagonal', [T([2, 3, 4])], {'offset': 1, 'axis1': 2, 'axis2': 1})
    add('diagEmbed', [T([2, 3])], {'axis1': 0, 'axis2': 2})
    add('tril', [T([3, 3], OF('nan', 'inf', 1))], special=True)


def joins():
    add('concat', [[T([2, 3]), T([2, 2]), T([2, 1])], 1])
    add('concat', [[T([2, 3]), T([1, 3])]])
    add('concat', [[T([2, 0, 2]), T([2, 3, 2])], 1])
    add('concat', [[T([4]), T([3]), T([2])], 0])
    add('concat', [[T([1, 2, 2]), T([2, 2, 2])]], {'axis': -3})
    add('stack', [[T([2, 3]), T([2, 3])]])
    add('stack', [[T([2, 3]), T([2, 3]), T([2, 3])], 1])
    add('stack', [[T([]), T([])], -1])
    add('split', [T([5, 2]), 2])
    add('split', [T([2, 6]), [1, 2, 3], 1])
    add('chunk', [T([6, 2]), 3])
    add('chunk', [T([2, 6]), 2, 1])
    add('unbind', [T([3, 2])])
    add('unbind', [T([2, 3]), 1])
    for how in ('xy', 'ij'):
        add('meshgrid', [[T([2]), T([3])]], {'indexing': how})
        add('meshgrid', [[T([2]), T([3]), T([2])]], {'indexing': how})
