"""Functions of one number, of two, comparisons, compound forms, activations: Polygrad's calls in torch's words.

Left out, because the documented contract differs from torch there:
- slopes of hardTanh, relu6, hardSigmoid, hardSwish, clip-like functions exactly at their corners (torch takes one side);
- slopes of hypot and atan2 at (0, 0) and of std at 0: not a number in torch, no promise here;
- fmod, remainder and floorDivide of integers by zero: an error in torch, 0 here;
- sign and heaviside of NaN: 0 in torch, NaN here (as in NumPy and the Array API);
- shifts by 32 bits or more: undefined in torch.
"""

import torch
import torch.nn.functional as F

from cases import add
from draw import AWAY, DTYPES, GRID, I, LIT, OF, T, U

SPECIALS = ('nan', 'inf', '-inf', '-0', 0, 1, -1, 0.5, -2.5, 1e-30, 3e38, -1e-40, 100, -100)


def nan_to_num(x, nan=0.0, posInf=None, negInf=None):
    return torch.nan_to_num(x, nan=nan, posinf=posInf, neginf=negInf)


def clip(x, low, high):
    return torch.clamp(x, low, high)


def cbrt(x):
    return torch.sign(x) * torch.abs(x).pow(1 / 3)


CALLS = {
    **{
        name: getattr(torch, name)
        for name in (
            'add sub mul div pow neg reciprocal abs sign sqrt rsqrt square exp exp2 expm1 log log1p log2 log10 sin cos tan '
            'asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erfinv lgamma digamma sinc floor ceil round trunc '
            'frac minimum maximum fmod remainder hypot copysign xlogy heaviside where lerp'
        ).split()
    },
    'cbrt': cbrt,
    'floorDivide': torch.floor_divide,
    'polygamma': torch.polygamma,
    'cast': lambda x, dtype: x.to(DTYPES[dtype]),
    'logAddExp': torch.logaddexp,
    'clip': clip,
    'fma': lambda a, b, c: a * b + c,
    'addcmul': lambda x, a, b, value=1: torch.addcmul(x, a, b, value=value),
    'addcdiv': lambda x, a, b, value=1: torch.addcdiv(x, a, b, value=value),
    'nanToNum': nan_to_num,
    'isNaN': torch.isnan,
    'isInf': torch.isinf,
    'isFinite': torch.isfinite,
    'isClose': lambda a, b, rtol=1e-5, atol=1e-8, equalNaN=False: torch.isclose(a, b, rtol, atol, equalNaN),
    'equal': torch.eq,
    'notEqual': torch.ne,
    'less': torch.lt,
    'lessEqual': torch.le,
    'greater': torch.gt,
    'greaterEqual': torch.ge,
    'logicalAnd': torch.logical_and,
    'logicalOr': torch.logical_or,
    'logicalXor': torch.logical_xor,
    'logicalNot': torch.logical_not,
    'bitwiseAnd': torch.bitwise_and,
    'bitwiseOr': torch.bitwise_or,
    'bitwiseXor': torch.bitwise_xor,
    'bitwiseNot': torch.bitwise_not,
    'leftShift': torch.bitwise_left_shift,
    'rightShift': torch.bitwise_right_shift,
    # Activations.
    'relu': F.relu,
    'relu6': F.relu6,
    'leakyRelu': lambda x, slope=0.01: F.leaky_relu(x, slope),
    'prelu': lambda x, w: torch.where(x > 0, x, w * x),
    'elu': lambda x, alpha=1.0: F.elu(x, alpha),
    'selu': F.selu,
    'celu': lambda x, alpha=1.0: F.celu(x, alpha),
    'sigmoid': torch.sigmoid,
    # hardsigmoid has no second derivative in torch.
    'hardSigmoid': lambda x: F.relu6(x + 3) / 6,
    'logSigmoid': F.logsigmoid,
    'hardTanh': lambda x, low=-1.0, high=1.0: F.hardtanh(x, low, high),
    'tanhShrink': F.tanhshrink,
    'softShrink': lambda x, **o: F.softshrink(x, o.get('lambda', 0.5)),
    'hardShrink': lambda x, **o: F.hardshrink(x, o.get('lambda', 0.5)),
    'threshold': lambda x, threshold, value: F.threshold(x, threshold, value),
    'softplus': F.softplus,
    'softsign': F.softsign,
    'gelu': lambda x, approximate='none': F.gelu(x, approximate=approximate),
    'silu': F.silu,
    'mish': F.mish,
    'hardSwish': F.hardswish,
    'glu': lambda x, axis=-1: F.glu(x, axis),
}

SHAPES = [[], [7], [2, 3], [2, 1, 4], [0, 3]]
WIDE = [[3, 2, 2, 2], [2, 1, 2, 1, 3], [1, 2, 1, 2, 2, 2], [2, 2, 1, 1, 2, 1, 2], [2, 1, 2, 1, 1, 2, 1, 3]]

# Function, where its argument lies, and the values of a case of special values (None: SPECIALS).
UNARY = [
    ('neg', U(-3, 3)), ('abs', AWAY(0.1, 3)), ('sign', AWAY(0.1, 3)), ('square', U(-3, 3)), ('reciprocal', AWAY(0.3, 3)),
    ('sqrt', U(0.1, 9)), ('rsqrt', U(0.1, 9)), ('cbrt', AWAY(0.1, 9)), ('exp', U(-5, 5)), ('exp2', U(-5, 5)),
    ('expm1', U(-3, 3)), ('log', U(0.05, 9)), ('log1p', U(-0.9, 9)), ('log2', U(0.05, 9)), ('log10', U(0.05, 9)),
    ('sin', U(-9, 9)), ('cos', U(-9, 9)), ('tan', U(-1.2, 1.2)), ('asin', U(-0.95, 0.95)), ('acos', U(-0.95, 0.95)),
    ('atan', U(-9, 9)), ('sinh', U(-4, 4)), ('cosh', U(-4, 4)), ('tanh', U(-4, 4)), ('asinh', U(-9, 9)),
    ('acosh', U(1.1, 9)), ('atanh', U(-0.9, 0.9)), ('erf', U(-3, 3)), ('erfc', U(-2, 3)), ('erfinv', U(-0.95, 0.95)),
    ('lgamma', U(0.2, 8)), ('digamma', U(0.2, 8)), ('sinc', U(-4, 4)), ('floor', U(-5, 5)), ('ceil', U(-5, 5)),
    ('round', U(-5, 5)), ('trunc', U(-5, 5)), ('frac', U(-5, 5)), ('nanToNum', U(-5, 5)), ('relu', AWAY(0.1, 3)),
    ('relu6', U(0.1, 5.9)), ('leakyRelu', AWAY(0.1, 3)), ('elu', AWAY(0.1, 3)), ('selu', AWAY(0.1, 3)),
    ('celu', AWAY(0.1, 3)), ('sigmoid', U(-6, 6)), ('hardSigmoid', U(-2.9, 2.9)), ('logSigmoid', U(-6, 6)),
    ('hardTanh', U(-0.9, 0.9)), ('tanhShrink', U(-3, 3)), ('softShrink', AWAY(0.6, 3)), ('hardShrink', AWAY(0.6, 3)),
    ('softplus', U(-6, 6)), ('softsign', AWAY(0.1, 4)), ('gelu', U(-4, 4)), ('silu', U(-5, 5)), ('mish', U(-5, 5)),
    ('hardSwish', U(-2.9, 2.9)),
]  # fmt: skip
# Where special values have a meaning that torch and the library agree on, sign of zero aside.
NO_SPECIALS = {'cbrt', 'nanToNum', 'lgamma', 'digamma', 'erfinv', 'tanhShrink', 'hardSwish', 'mish', 'silu', 'gelu', 'softsign',
               'celu', 'softShrink', 'hardShrink', 'sinc', 'sign', 'asinh', 'acosh', 'logSigmoid'}  # fmt: skip


def cases():
    for name, kind in UNARY:
        for shape in SHAPES:
            add(name, [T(shape, kind)])
        add(name, [T(WIDE[len(name) % len(WIDE)], kind)])
        add(name, [T([3, 5], kind)], note='more')
        if name not in NO_SPECIALS:
            add(name, [T([len(SPECIALS)], LIT(*SPECIALS))], special=True, note='special values')
    for name in ('mish', 'silu', 'gelu', 'logSigmoid', 'softplus', 'sigmoid', 'elu', 'celu', 'selu'):
        add(name, [T([6], LIT('nan', 60, -60, 15, -15, 0))], special=True, note='far out')
    add('lgamma', [T([6], LIT('nan', 'inf', 0, 1, 2, 171))], special=True, note='special values')
    add('lgamma', [T([4], LIT(-0.5, -1.5, -2.25, -3.75))], note='negative')
    add('digamma', [T([4], LIT(-0.5, -1.25, -2.25, -3.75))], note='negative')
    add('erfinv', [T([5], LIT('nan', 1, -1, 0, 2))], special=True, note='special values')
    add('sinc', [T([3], LIT(0, 1, -2))], special=True, note='special values')
    add('erf', [T([5], U(-0.01, 0.01))], note='near 0')
    add('log1p', [T([5], U(-1e-4, 1e-4))], note='near 0')
    add('expm1', [T([5], U(-1e-4, 1e-4))], note='near 0')
    add('nanToNum', [T([6], LIT('nan', 'inf', '-inf', 1.5, '-0', 2))], {'nan': 7.0, 'posInf': 99.0, 'negInf': -99.0}, special=True)
    for name in ('floor', 'ceil', 'round', 'trunc'):
        add(name, [T([8], LIT(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3, 8388609))], special=True, note='halves')
    for n in (0, 1, 2, 3):
        add('polygamma', [n, T([5], U(0.3, 6))], second=n < 3)
    casts()
    activations()
    binary()
    compound()
    integers()
    halves()


def casts():
    """Numbers that the target holds after rounding; casts out of range differ between machines in torch."""
    for to in DTYPES:
        low = 0 if to == 'uint8' else -30
        for own in ('float64', 'float32', 'float16', 'bfloat16'):
            if own != to:
                add('cast', [T([3, 5], GRID(2 * low, 60, 4)), to], dtypes=own, grad=False)
        for own in ('int8', 'int16', 'int32', 'int64', 'uint8', 'bool'):
            if own != to:
                kind = I(0, 1) if own == 'bool' else I(0, 255) if own == 'uint8' else I(-128, 127)
                add('cast', [T([3, 5], kind), to], dtypes=own)
    add('cast', [T([4], LIT(70000, -70000, 300, 1000)), 'int16'], dtypes='int32', note='wraps')
    add('cast', [T([4], LIT(70000, -70000, 300, 1000)), 'uint8'], dtypes='int32', note='wraps')
    add('cast', [T([3], LIT('nan', 0, 0.25)), 'bool'], dtypes='float32', special=True)


def activations():
    x = lambda n=6: T([2, n], AWAY(0.1, 3))
    for slope in (0.0, 0.2, 1.5):
        add('leakyRelu', [x()], {'slope': slope})
    for alpha in (0.5, 2.0):
        add('elu', [x()], {'alpha': alpha})
        add('celu', [x()], {'alpha': alpha})
    add('hardTanh', [x()], {'low': -2.05, 'high': 0.55})
    for value in (0.25, 1.0):
        add('softShrink', [T([2, 4], AWAY(1.1, 3))], {'lambda': value})
        add('hardShrink', [T([2, 4], AWAY(1.1, 3))], {'lambda': value})
    add('threshold', [x()], {'threshold': 0.05, 'value': -7.0})
    add('threshold', [x()], {'threshold': -1.0, 'value': 20.0})
    add('gelu', [x()], {'approximate': 'tanh'})
    add('gelu', [T([5], U(-4, 4))], {'approximate': 'tanh'})
    for axis in (-1, 0, 1):
        add('glu', [T([4, 2, 6] if axis != -1 else [3, 4])], {'axis': axis})
    add('prelu', [x(), T([1], U(0.1, 0.5))])
    add('prelu', [x(3), T([3], U(0.1, 0.5))])
    for name in ('relu', 'relu6', 'leakyRelu', 'hardTanh', 'hardSigmoid', 'hardSwish', 'elu', 'selu'):
        add(name, [T([3, 4], GRID(-9, 9, 2))], grad=False, note='corners')
    for name in ('relu', 'abs', 'leakyRelu', 'sign'):
        add(name, [T([3], LIT(0, -1, 2))], note='slope at 0', second=False)


PAIRS = [([], []), ([5], [5]), ([2, 3], [3]), ([3, 1], [1, 4]), ([2, 1, 3], [4, 1]), ([], [2, 2]), ([0, 3], [1, 3]), ([1, 2, 1, 2, 1], [2, 1, 2, 1, 3])]
BINARY = [
    ('add', U(-3, 3), U(-3, 3)), ('sub', U(-3, 3), U(-3, 3)), ('mul', U(-3, 3), U(-3, 3)), ('div', U(-3, 3), AWAY(0.3, 3)),
    ('pow', U(0.3, 3), U(-2, 2)), ('maximum', U(-3, 3), U(-3, 3)), ('minimum', U(-3, 3), U(-3, 3)),
    ('fmod', U(-9, 9), AWAY(0.7, 3)), ('remainder', U(-9, 9), AWAY(0.7, 3)), ('floorDivide', U(-9, 9), AWAY(0.7, 3)),
    ('atan2', AWAY(0.2, 3), AWAY(0.2, 3)), ('hypot', AWAY(0.2, 3), AWAY(0.2, 3)), ('copysign', AWAY(0.2, 3), AWAY(0.2, 3)),
    ('logAddExp', U(-5, 5), U(-5, 5)), ('xlogy', AWAY(0.2, 3), U(0.2, 3)),
]  # fmt: skip
COMPARE = ['equal', 'notEqual', 'less', 'lessEqual', 'greater', 'greaterEqual', 'logicalAnd', 'logicalOr', 'logicalXor']


def binary():
    for name, left, right in BINARY:
        whole = name in ('floorDivide',)
        for a, b in PAIRS:
            add(name, [T(a, left), T(b, right)], grad=not whole)
        if name in ('fmod', 'remainder', 'floorDivide', 'atan2', 'hypot', 'copysign', 'xlogy'):
            continue
        n = len(SPECIALS)
        if name != 'logAddExp':
            add(name, [T([n, 1], LIT(*SPECIALS)), T([n], LIT(*SPECIALS))], special=True, note='special values')
    add('logAddExp', [T([6], LIT('inf', '-inf', '-inf', 'nan', 1000, -1000)), T([6], LIT('inf', '-inf', 3, 1, 999, -1001))], special=True, note='special values')
    add('maximum', [T([4], LIT(1, 2, 3, -1)), T([4], LIT(1, 0, 3, 5))], note='ties', second=False)
    add('minimum', [T([4], LIT(1, 2, 3, -1)), T([4], LIT(1, 0, 3, 5))], note='ties', second=False)
    add('xlogy', [T([4], LIT(0, 0, 2, -1)), T([4], LIT(2, 0.5, 3, 0.25))], note='x is 0')
    add('xlogy', [T([4], LIT(0, 0, 0, 1)), T([4], LIT(0, -1, 'nan', 0))], special=True, note='special values')
    add('pow', [T([4], LIT(0, 0, 0, 2)), T([4], LIT(0, 1, 2, 0))], note='base 0', grad=False)
    add('copysign', [T([5], LIT(1, -1, 2, 'inf', 0)), T([5], LIT('-0', 0, '-inf', -1, -1))], special=True, note='special values')
    add('hypot', [T([4], LIT(3e38, 1e-30, 'inf', 0)), T([4], LIT(1, 1e-30, 'nan', 0))], special=True, note='special values')
    for k in (2, 3, -1, 0.5, -2, 0, 1, 2.5, -0.5):
        add('pow', [T([5], U(0.3, 3)), k])
    add('pow', [T([5], AWAY(0.3, 3)), 2], note='negative base')
    add('pow', [T([5], AWAY(0.3, 3)), 3], note='negative base')
    for name in ('add', 'sub', 'mul', 'div', 'maximum', 'minimum'):
        if name not in ('maximum', 'minimum'):
            add(name, [T([2, 3], U(-3, 3)), 1.5])
    for name in COMPARE:
        for a, b in PAIRS[1:5]:
            add(name, [T(a, I(-1, 1)), T(b, I(-1, 1))], grad=False)
        n = len(SPECIALS)
        add(name, [T([n, 1], LIT(*SPECIALS)), T([n], LIT(*SPECIALS))], special=True, note='special values')
    for name in ('isNaN', 'isInf', 'isFinite', 'logicalNot'):
        for shape in SHAPES:
            add(name, [T(shape, OF('nan', 1, 'inf', '-inf', 0, -3))], special=True)
    close = [T([6], LIT(1, 1, 'nan', 'inf', 1, 'inf')), T([6], LIT(1.000001, 1.1, 'nan', 'inf', 1.005, '-inf'))]
    add('isClose', close, special=True)
    add('isClose', close, {'rtol': 0.01}, special=True)
    add('isClose', close, {'atol': 0.2}, special=True)
    add('isClose', close, {'equalNaN': True}, special=True)


def compound():
    x = lambda *s: T(list(s), U(-3, 3))
    mask = lambda *s: T(list(s), I(0, 1), dtype='bool')
    for low, high in ((-1.05, 1.55), (None, 0.55), (-0.55, None)):
        add('clip', [x(3, 4), low, high])
        add('clip', [x(6), low, high])
    add('clip', [T([5], LIT('nan', 'inf', '-inf', -5, 5)), -1.0, 1.0], special=True, note='special values')
    add('clip', [x(2, 3), T([3], U(-2, -1)), T([2, 1], U(1, 2))])
    add('lerp', [x(2, 3), x(3), T([2, 1], U(0, 1))])
    add('lerp', [x(4), x(4), 0.25])
    add('fma', [x(2, 3), x(3), x(2, 1)])
    add('addcmul', [x(2, 3), x(3), x(2, 1)])
    add('addcmul', [x(2, 3), x(2, 3), x(2, 3)], {'value': -0.5})
    add('addcdiv', [x(2, 3), x(3), T([2, 1], AWAY(0.5, 2))])
    add('addcdiv', [x(4), x(4), T([4], AWAY(0.5, 2))], {'value': 2.0})
    add('heaviside', [T([6], LIT(-1, 0, 2, '-0', 'inf', 3)), T([6], U(1, 2))], special=True)
    for s in ([4], [2, 3], [2, 1, 3]):
        add('where', [mask(*s), x(*s), x(3) if s[-1] == 3 else x(1)])
    add('where', [mask(2, 1), x(3), x(2, 3)])
    add('where', [T([3], LIT(1, 0, 1), dtype='bool'), T([3], LIT(1, 'nan', 'inf')), T([3], LIT('nan', 2, 'nan'))], special=True)


def integers():
    limits = {'int8': (-128, 127), 'int16': (-32768, 32767), 'int32': (-(2**31), 2**31 - 1), 'uint8': (0, 255)}
    kinds = {d: I(lo, hi) for d, (lo, hi) in limits.items() if d != 'int32'}
    kinds['int32'] = I(-(2**31), 2**31 - 1)
    kinds['int64'] = LIT(*[str(v) for v in (2**63 - 1, -(2**63), 2**62, -1, 0, 1, 12345678901234, -98765432109876)])
    for dtype, kind in kinds.items():
        x = lambda s, k=kind: T(s if dtype != 'int64' else [8], k)
        small = lambda s: T(s, I(0 if dtype == 'uint8' else -9, 9))
        for name in ('add', 'sub', 'mul', 'maximum', 'minimum', 'bitwiseAnd', 'bitwiseOr', 'bitwiseXor'):
            add(name, [x([12]), x([12])], dtypes=dtype)
            add(name, [small([3, 1]), small([4])], dtypes=dtype)
        for name in ('equal', 'less', 'greaterEqual', 'logicalAnd'):
            add(name, [small([3, 1]), small([4])], dtypes=dtype)
        for name in ('neg', 'bitwiseNot', 'square', 'abs', 'sign', 'relu'):
            if dtype == 'uint8' and name == 'neg' or name == 'relu':
                continue
            add(name, [x([10])], dtypes=dtype)
        divisor = I(1, 9) if dtype == 'uint8' else OF(-7, -3, -1, 1, 2, 5)
        if dtype != 'int64':
            for name in ('floorDivide', 'remainder', 'fmod'):
                # -1 divides the smallest number of a dtype only in `wraps`.
                add(name, [T([24], I(0, 200) if dtype == 'uint8' else I(-100, 100)), T([24], divisor)], dtypes=dtype)
        add('leftShift', [small([9]), T([9], I(0, 6))], dtypes=dtype)
        add('rightShift', [x([9]) if dtype != 'int64' else x([8]), T([9] if dtype != 'int64' else [8], I(0, 6))], dtypes=dtype)
        add('where', [T([6], I(0, 1), dtype='bool'), small([6]), small([6])], dtypes=dtype)
        add('clip', [small([9]), 2, 5], dtypes=dtype)
        add('pow', [small([9]), T([9], I(0, 3))], dtypes=dtype)
    for name in ('logicalAnd', 'logicalOr', 'logicalXor', 'equal', 'notEqual', 'bitwiseAnd', 'bitwiseOr', 'bitwiseXor'):
        add(name, [T([3, 1], I(0, 1)), T([5], I(0, 1))], dtypes='bool')
    add('logicalNot', [T([5], I(0, 1))], dtypes='bool')
    add('bitwiseNot', [T([5], I(0, 1))], dtypes='bool')
    # Dtypes that meet, where the Array API says in which; integers that become float32.
    for wide, narrow in (('int32', 'int8'), ('int32', 'int16'), ('int64', 'int32'), ('int16', 'uint8'), ('int32', 'uint8'), ('int64', 'uint8'), ('int16', 'int8')):
        for name in ('add', 'mul', 'maximum', 'less'):
            add(name, [T([3, 1], I(0, 9)), T([4], I(0, 9), dtype=narrow)], dtypes=wide)
    add('add', [T([5], I(-100, 100)), T([5], I(0, 200), dtype='uint8')], dtypes='int8', note='meet in int16')
    for dtype in ('int32', 'int8', 'uint8', 'int64'):
        for name in ('sqrt', 'exp', 'sin', 'tanh', 'log', 'sigmoid'):
            add(name, [T([8] if dtype != 'int64' else [5], I(1, 9))], dtypes=dtype)
        add('div', [T([3, 1], I(1, 9)), T([4], I(1, 9))], dtypes=dtype)


def halves():
    """16-bit floats: results of float64 arithmetic on values that 16 bits hold."""
    for dtype in ('float16', 'bfloat16'):
        for name in ('neg', 'abs', 'square', 'exp', 'sin', 'cos', 'tanh', 'sigmoid', 'relu', 'silu', 'gelu', 'erf', 'floor', 'round', 'expm1', 'softplus', 'atan', 'erfc', 'asinh', 'logSigmoid', 'mish', 'tanhShrink', 'hardSwish', 'selu', 'elu', 'softsign', 'sinc'):
            add(name, [T([3, 5], GRID(-32, 32, 16))], dtypes=dtype)
        for name in ('sqrt', 'log', 'rsqrt', 'reciprocal', 'log1p', 'cbrt', 'log10', 'log2'):
            add(name, [T([3, 5], GRID(1, 64, 16))], dtypes=dtype)
        for name in ('add', 'sub', 'mul', 'maximum', 'minimum', 'less', 'equal'):
            add(name, [T([3, 1], GRID(-32, 32, 16)), T([5], GRID(-32, 32, 16))], dtypes=dtype)
        add('div', [T([3, 1], GRID(-32, 32, 16)), T([5], GRID(1, 64, 16))], dtypes=dtype)
        add('gelu', [T([3, 5], GRID(-32, 32, 16))], {'approximate': 'tanh'}, dtypes=dtype)
        for name in ('atan2', 'hypot', 'logAddExp'):
            add(name, [T([3, 1], GRID(1, 32, 16)), T([5], GRID(1, 32, 16))], dtypes=dtype)
        add('isNaN', [T([4], LIT('nan', 'inf', 0, 1))], dtypes=dtype, special=True)
        add('add', [T([4], LIT('nan', 'inf', '-0', 1)), T([4], LIT(1, '-inf', '-0', 2))], dtypes=dtype, special=True)
