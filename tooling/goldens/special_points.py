"""Writes packages/conformance/src/suites/special/points-values.ts: functions of one number and their first two derivatives at special points.

    python3 -m pip install mpmath sympy
    python3 tooling/goldens/special_points.py > packages/conformance/src/suites/special/points-values.ts

Derivatives are those that SymPy gives of formulas; mpmath evaluates them with as many digits as cancellation needs. At zeros, at the ends of domains and
at infinities the value is the limit: from the side of a signed zero, from within the domain. A dot stands where nothing is promised.
"""
import math

import mpmath as mp
import sympy as sp

x = sp.Symbol('x', real=True)
POINTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 0.9999999403953552, -0.9999999403953552, 2.0**-126, -(2.0**-126), 30.0, -30.0, 1e10, -1e10]
POINTS += [3.4028234663852886e38, -3.4028234663852886e38, math.inf, -math.inf, math.nan]
NOTHING = '.'


def decimal(text):
    return sp.Float(text, 60)


exp, log, sqrt, pi = sp.exp, sp.log, sp.sqrt, sp.pi
tanh_of = lambda t: (1 - exp(-2 * t)) / (1 + exp(-2 * t))
one_plus = (1 + exp(x)) ** 2
inner = sqrt(2 / pi) * (x + decimal('0.044715') * x**3)
selu = decimal('1.0507009873554805')

# A formula, or one for negative and one for other numbers; the domain.
FORMULAS = {
    'reciprocal': (1 / x,),
    'sqrt': (sqrt(x),),
    'rsqrt': (1 / sqrt(x),),
    'cbrt': (-((-x) ** sp.Rational(1, 3)), x ** sp.Rational(1, 3)),
    'exp': (exp(x),),
    'exp2': (exp(x * log(2)),),
    'expm1': (exp(x) - 1,),
    'log': (log(x),),
    'log2': (log(x) / log(2),),
    'log10': (log(x) / log(10),),
    'log1p': (log(1 + x),),
    'sin': (sp.sin(x),),
    'cos': (sp.cos(x),),
    'tan': (sp.tan(x),),
    'asin': (sp.asin(x),),
    'acos': (sp.acos(x),),
    'atan': (sp.atan(x),),
    'sinh': ((exp(x) - exp(-x)) / 2,),
    'cosh': ((exp(x) + exp(-x)) / 2,),
    'tanh': (tanh_of(x),),
    'asinh': (-log(-x + sqrt(x * x + 1)), log(x + sqrt(x * x + 1))),
    'acosh': (log(x + sqrt(x - 1) * sqrt(x + 1)),),
    'atanh': (log((1 + x) / (1 - x)) / 2,),
    'erf': (sp.erf(x),),
    'erfc': (sp.erfc(x),),
    'sinc': (sp.sin(pi * x) / (pi * x),),
    'sigmoid': (1 / (1 + exp(-x)),),
    'logSigmoid': (x - log(1 + exp(x)), -log(1 + exp(-x))),
    'softplus': (log(1 + exp(x)), x + log(1 + exp(-x))),
    'softplus with beta': (log(1 + exp(5 * x / 2)) * 2 / 5, x + log(1 + exp(-5 * x / 2)) * 2 / 5),
    'softsign': (x / (1 - x), x / (1 + x)),
    'elu': (exp(x) - 1, x),
    'celu with alpha': (2 * (exp(x / 2) - 1), x),
    'selu': (decimal('1.6732632423543772') * selu * (exp(x) - 1), selu * x),
    'silu': (x / (1 + exp(-x)),),
    'mish': (x * (one_plus - 1) / (one_plus + 1), x * tanh_of(x + log(1 + exp(-x)))),
    'gelu': (x * sp.erfc(-x / sqrt(2)) / 2,),
    'gelu tanh': (x / (1 + exp(-2 * inner)),),
    'tanhShrink': (x - tanh_of(x),),
    'pow 3': (x**3,),
    'pow 4': (x**4,),
    'pow 2.5': (x ** sp.Rational(5, 2),),
    'pow -2': (x**-2,),
}
ABOVE_ZERO = {name: (0, None) for name in ['sqrt', 'rsqrt', 'log', 'log2', 'log10', 'pow 2.5']}
DOMAINS = {**ABOVE_ZERO, 'log1p': (-1, None), 'asin': (-1, 1), 'acos': (-1, 1), 'acosh': (1, None), 'atanh': (-1, 1)}
# At infinities products of 0 and infinity, which every library leaves at NaN.
PRODUCTS = ['silu', 'mish', 'gelu', 'gelu tanh', 'tanhShrink']
PERIODIC = ['sin', 'cos', 'tan']  # and sinc, whose waves become 0
KINKED = ['elu', 'celu with alpha', 'selu', 'softsign']


def branches(formulas):
    """Functions of negative and of other numbers, for each order of derivative."""
    result = []
    for order in range(3):
        both = [sp.lambdify(x, sp.diff(formula, x, order), 'mpmath') for formula in formulas]
        result.append((both[0], both[-1]))
    return result


def evaluated(pair, at, side, digits):
    with mp.workdps(digits):
        try:
            value = pair[0 if at < 0 or (at == 0 and side < 0) else 1](at)
        except ZeroDivisionError:
            return None
        if isinstance(value, mp.mpc):
            if value.imag != 0:
                return None
            value = value.real
        return None if mp.isnan(value) else mp.mpf(value)


def limit(values):
    """Where three values, ever nearer to a point, go; None if nowhere."""
    if any(value is None for value in values):
        return None
    a, b, c = values
    if abs(c) > 1e15 or (abs(c) > 1.3 * abs(b) > 1.6 * abs(a) and abs(c) > 20):
        return mp.inf if c > 0 else -mp.inf
    if abs(c) < 1e-9 and abs(c) <= abs(b):
        return mp.mpf(0)
    return c if abs(c - b) < 1e-9 * abs(c) else None


def digits_for(name, value):
    size = abs(math.log10(abs(value)))
    return 60 if name in ('erf', 'erfc', 'gelu') else int(60 + 4.2 * size)


def exact(name, order, pair, value):
    low, high = DOMAINS.get(name, (None, None))
    is_zero = value == 0
    outside = (low is not None and value < low) or (high is not None and value > high)
    if name == 'pow 2.5' and value == -math.inf:
        return NOTHING  # infinite in C
    if math.isnan(value) or (math.isinf(value) and name in PERIODIC) or (outside and order == 0):
        return mp.nan
    if outside or (is_zero and math.copysign(1, value) < 0 and low == 0):
        return NOTHING
    if math.isinf(value):
        if name in PRODUCTS:
            return NOTHING
        if name == 'sinc':
            return mp.mpf(0)
        sign = 1 if value > 0 else -1
        digits = 60 if name in ('erf', 'erfc') else 450
        found = limit([evaluated(pair, sign * mp.mpf(10) ** power, sign, digits) for power in (30, 60, 120)])
        return mp.nan if found is None else found
    if not (is_zero or value in (low, high)):
        return evaluated(pair, mp.mpf(value), 1, digits_for(name, value))
    if is_zero and order > 0 and name in KINKED:
        return NOTHING
    side = -1 if value == high or (is_zero and math.copysign(1, value) < 0) else 1
    with mp.workdps(450):
        return limit([evaluated(pair, value + side * mp.mpf(10) ** -power, side, 450) for power in (30, 60, 120)])


def text(value):
    if isinstance(value, str):
        return value
    if mp.isnan(value):
        return 'nan'
    if abs(value) > mp.mpf(10) ** 309:
        return 'inf' if value > 0 else '-inf'
    if abs(value) < mp.mpf(10) ** -60:
        return '0'
    digits = repr(float(value))
    return digits[:-2] if digits.endswith('.0') else digits


def main():
    print('''/**
 * Functions of one number and their first two derivatives at special points: zeros, ends of domains, numbers beside them, the smallest normal and the
 * largest float32, infinities, NaN. tooling/goldens/special_points.py writes this file with mpmath 1.3.
 *
 * The first line has the points, numbers of float32. Each other one has a function's name, the order of derivative and the values at these points; at zeros,
 * ends and infinities they are limits, from the side of a signed zero. A dot stands where nothing is promised: at a kink, for a derivative outside of the
 * domain, and for products of 0 and infinity that every library leaves.
 */
export const specialPointsTable = `''')
    print('points | 0 |', ' '.join('-0' if str(p) == '-0.0' else text(mp.mpf(p)) for p in POINTS))
    for name, formulas in FORMULAS.items():
        for order, pair in enumerate(branches(formulas)):
            print(name, '|', order, '|', ' '.join(text(exact(name, order, pair, p)) for p in POINTS), flush=True)
    print('`;')


main()
