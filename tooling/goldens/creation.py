"""Tensors made of numbers alone."""

import torch

from cases import add
from draw import DTYPES


def make(f):
    return lambda *a, dtype='float32', **o: f(*a, dtype=torch.float64 if dtype == 'float32' else DTYPES[dtype], **o)


def eye(n, m=None, diagonal=0, dtype=None):
    m = n if m is None else m
    return torch.diag(torch.ones(max(n, m) + abs(diagonal), dtype=dtype), diagonal)[:n, :m]


def tri(n, m=None, diagonal=0, dtype=None):
    return torch.ones(n, n if m is None else m).tril(diagonal).to(dtype)


CALLS = {
    'arange': make(torch.arange),
    'linspace': make(torch.linspace),
    'eye': make(eye),
    'tri': make(tri),
    'zeros': make(torch.zeros),
    'ones': make(torch.ones),
    'full': make(torch.full),
}


def cases():
    for dtype in ('float32', 'float64', 'int32', 'int64', 'int8', 'uint8'):
        own = lambda op, args, o={}: add(op, args, {**o, 'dtype': dtype}, dtypes=dtype)
        own('arange', [5])
        own('arange', [2, 9])
        own('arange', [1, 12, 3])
        own('eye', [3])
        own('eye', [2, 4], {'diagonal': 1})
        own('eye', [4, 3], {'diagonal': -1})
        own('tri', [3])
        own('tri', [3, 4], {'diagonal': 1})
        own('zeros', [[2, 3]])
        own('ones', [[2, 0]])
        own('full', [[2, 2], 7])
        if 'u' not in dtype:
            own('arange', [7, -5, -2])
        if 'float' in dtype:
            own('arange', [0, 1, 0.125])
            own('arange', [0, 1, 0.1])
            own('linspace', [0, 1, 5])
            own('linspace', [-2, 3, 7])
            own('linspace', [3, 3, 1])
