"""Inputs of golden cases: numbers from a counter and a name, and views of them.

The same numbers come out of packages/conformance/src/goldens/draw.ts, bit for bit, so the file holds no inputs. Everything
here is exact: 32-bit integers, and float64 arithmetic that is rounded once to float32.
"""

import numpy as np
import torch

DTYPES = {
    'float64': torch.float64,
    'float32': torch.float32,
    'float16': torch.float16,
    'bfloat16': torch.bfloat16,
    'int8': torch.int8,
    'int16': torch.int16,
    'int32': torch.int32,
    'int64': torch.int64,
    'uint8': torch.uint8,
    'bool': torch.bool,
}


def seed_of(text):
    """FNV-1a of ASCII text: a seed from a name."""
    h = 0x811C9DC5
    for c in text.encode('ascii'):
        h = ((h ^ c) * 0x01000193) & 0xFFFFFFFF
    return h


def _mix(x):
    """A bijection of 32-bit words (C. Wellons, hash prospector, `lowbias32`, public domain)."""
    x = x ^ (x >> np.uint64(16))
    x = (x * np.uint64(0x7FEB352D)) & np.uint64(0xFFFFFFFF)
    x = x ^ (x >> np.uint64(15))
    x = (x * np.uint64(0x846CA68B)) & np.uint64(0xFFFFFFFF)
    return x ^ (x >> np.uint64(16))


def words(seed, n):
    """n words of 32 bits: a function of seed and counter."""
    key = _mix(np.array([seed], dtype=np.uint64))
    return _mix((np.arange(n, dtype=np.uint64) + key) & np.uint64(0xFFFFFFFF))


# Kinds of numbers, as they stand in the file.
def U(low, high):
    """Uniform in [low, high), float32 values."""
    return ['u', low, high]


def AWAY(low, high):
    """Uniform in low..high with a random sign: away from a kink or a pole at zero."""
    return ['s', low, high]


def I(low, high):
    """Whole numbers low..high."""
    return ['i', low, high]


def GRID(low, high, parts):
    """Whole numbers low..high divided by a power of two: exact in 16-bit floats too."""
    return ['g', low, high, parts]


def OF(*values):
    """One of some values each; not numbers are 'nan', 'inf', '-inf', '-0'."""
    return ['c', list(values)]


def LIT(*values):
    """These values. Integers beyond 2^53 as text."""
    return ['l', list(values)]


def DATA(array):
    """Values that no formula gives; they stand in the file (float32 values)."""
    return ['b', np.asarray(array, dtype=np.float32)]


def _number(value):
    if isinstance(value, str):
        return float(value) if value in ('nan', 'inf', '-inf', '-0') else int(value)
    return value


def numbers(kind, seed, n, floating=True):
    name = kind[0]
    narrow = (lambda v: float(np.float32(v))) if floating else (lambda v: v)
    if name == 'b':
        return kind[1].reshape(-1).astype(np.float64)
    if name == 'l':
        assert len(kind[1]) == n, (len(kind[1]), n)
        return [narrow(_number(v)) for v in kind[1]]
    w = words(seed, n)
    if name == 'u':
        u = (w >> np.uint64(8)).astype(np.float64) * 2.0**-24
        return np.float32(kind[1] + (kind[2] - kind[1]) * u).astype(np.float64)
    if name == 's':
        u = (w >> np.uint64(8)).astype(np.float64) * 2.0**-24
        sign = np.where((w & np.uint64(1)) == 1, -1.0, 1.0)
        return np.float32(sign * (kind[1] + (kind[2] - kind[1]) * u)).astype(np.float64)
    if name == 'i':
        return (w % np.uint64(kind[2] - kind[1] + 1)).astype(np.int64) + kind[1]
    if name == 'g':
        return ((w % np.uint64(kind[2] - kind[1] + 1)).astype(np.int64) + kind[1]) / kind[3]
    if name == 'c':
        choice = w % np.uint64(len(kind[1]))
        return [narrow(_number(kind[1][int(i)])) for i in choice]
    raise ValueError(name)


class T:
    """A tensor argument: logical shape, numbers, dtype (None: the case's), and how it lies in memory.

    `layout` is plain, transposed, strided, flipped, sliced or expanded; None lets the case's name choose, so that all
    operations meet all layouts. `expand=False` keeps that choice from repeating values.
    """

    LAYOUTS = ['plain', 'transposed', 'plain', 'strided', 'flipped', 'plain', 'sliced', 'expanded', 'plain']

    def __init__(self, shape, kind=None, dtype=None, layout=None, expand=True, grad=True):
        self.shape = [shape] if isinstance(shape, int) else list(shape)
        self.kind = kind if kind is not None else U(-2, 2)
        self.dtype = dtype
        self.layout = layout
        self.expand = expand
        self.grad = grad and dtype is None

    def place(self, name):
        """Base shape and view steps."""
        s = self.shape
        layout = self.layout
        if self.kind[0] in 'lb':
            layout = layout or 'plain'
        if layout is None:
            layout = self.LAYOUTS[seed_of(name + '/layout') % len(self.LAYOUTS)]
        if layout == 'expanded' and (not self.expand or not s or s[0] < 2):
            layout = 'plain'
        if layout == 'transposed' and len(s) < 2:
            layout = 'strided'
        if not s:
            layout = 'plain'
        if layout == 'plain':
            return s, []
        if layout == 'transposed':
            axes = list(range(len(s)))[::-1]
            return s[::-1], [['permute', axes]]
        if layout == 'strided':
            return s[:-1] + [2 * s[-1] + 1], [['slice', [[0, n, 1] for n in s[:-1]] + [[1, 2 * s[-1] + 1, 2]]]]
        if layout == 'flipped':
            return s, [['flip', list(range(len(s)))]]
        if layout == 'sliced':
            return [n + 2 for n in s], [['slice', [[1, n + 1, 1] for n in s]]]
        if layout == 'expanded':
            return [1] + s[1:], [['expand', s]]
        raise ValueError(layout)

    def make(self, name, dtype):
        """The tensor, and its description for the file."""
        base, view = self.place(name)
        n = int(np.prod(base)) if base else 1
        own = self.dtype or dtype
        values = numbers(self.kind, seed_of(name), n, 'float' in own)
        # 16-bit floats: exact numbers are computed with, see README.md.
        wide = 'float64' if own in ('float64', 'float32', 'float16', 'bfloat16') else own
        t = torch.tensor(np.asarray(values) if not isinstance(values, list) else values, dtype=DTYPES[wide]).reshape(base)
        for step, what in view:
            if step == 'permute':
                t = t.permute(what)
            elif step == 'flip':
                t = t.flip(what)
            elif step == 'expand':
                t = t.expand(what)
            else:
                t = t[tuple(slice(a, b, c) for a, b, c in what)]
        assert list(t.shape) == self.shape, (t.shape, self.shape)
        about = {'s': base, 'k': self.kind if self.kind[0] != 'b' else ['b']}
        if self.dtype:
            about['d'] = self.dtype
        if view:
            about['v'] = view
        return t.detach(), about
