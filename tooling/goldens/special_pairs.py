"""Writes packages/conformance/src/suites/special/pairs-values.ts: functions of two numbers, and losses, with their derivatives at special points.

    python3 -m pip install mpmath sympy
    python3 tooling/goldens/special_pairs.py > packages/conformance/src/suites/special/pairs-values.ts

Values of functions that C has are those of Python's math module. All others, and derivatives, are formulas of SymPy that mpmath evaluates. At zeros and
infinities they are limits, from the side of a signed zero. Where both numbers go to a limit they go there along several paths, at different speeds; a dot
stands where the paths disagree, so that nothing is promised.
"""
import math

import mpmath as mp
import sympy as sp

a, b = sp.symbols('a b', real=True)
ORDERS = [('f', ()), ('fa', (a,)), ('fb', (b,)), ('faa', (a, a)), ('fab', (a, b)), ('fbb', (b, b))]
POINTS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 2.0**-126, 2.0**-140, 3.4028234663852886e38, -3.4028234663852886e38]
POINTS += [math.inf, -math.inf, math.nan]
NOTHING = '.'
DIGITS = 700
exp, log, sqrt = sp.exp, sp.log, sp.sqrt
NO_PARTS = lambda p, q: False
ZERO = sp.Integer(0)


def softplus(t):
    return log(1 + exp(t))


def whole(q):
    return math.isfinite(q) and q == int(q)


def safe(f):
    """A function of C, whose errors of domain are NaN and of range infinite."""
    def value(p, q):
        try:
            return f(p, q)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return value


def power(p, q):
    try:
        return math.pow(p, q)
    except OverflowError:
        return -math.inf if p < 0 and whole(q) and q % 2 == 1 else math.inf
    except ValueError:  # 0 to a negative power, or a negative number to a broken one
        if p != 0:
            return math.nan
        return -math.inf if math.copysign(1, p) < 0 and whole(q) and q % 2 == 1 else math.inf


def larger(p, q):
    return math.nan if math.isnan(p) or math.isnan(q) else max(p, q)


def smaller(p, q):
    return -larger(-p, -q)


def floored(p, q):
    rest = math.fmod(p, q)
    return rest + q if rest != 0 and (rest < 0) != (q < 0) else rest


class Function:
    """
    formulas: cases (condition on the point, formula); the first that fits counts. value: the value where C says it. held: which numbers stay at 0, as the
    function is smooth there. kink, second_kink, by_second: where no derivative is promised, none of the second order, none by the second number.
    steps: the derivatives by both numbers of a function whose second ones are 0, None where it jumps. largest: bound of the second number.
    """

    def __init__(self, formulas, value=None, held='', kink=NO_PARTS, second_kink=NO_PARTS, by_second=NO_PARTS, steps=None, largest=math.inf):
        self.value, self.held, self.kink, self.second_kink, self.by_second = value, held, kink, second_kink, by_second
        self.steps, self.largest = steps, largest
        if not isinstance(formulas, list):
            formulas = [(lambda p, q: True, formulas)]
        of = lambda formula: [sp.lambdify((a, b), sp.diff(formula, *by) if by else formula, 'mpmath') for _, by in ORDERS]
        self.cases = [(fits, None if formula is None else of(formula)) for fits, formula in formulas]

    def lambdas(self, p, q):
        for fits, lambdas in self.cases:
            if fits(p, q):
                return lambdas
        return None


def negative(p, q):
    return p < 0 or (p == 0 and math.copysign(1, p) < 0)


def at_most(p, q):
    return p <= q


def quotient_steps(rounded):
    """The derivatives of a remainder: 1, and minus the whole quotient."""
    def steps(p, q):
        if q == 0 or math.isinf(p) or math.isinf(q):
            return None
        quotient = mp.mpf(p) / mp.mpf(q)
        if p != 0 and quotient == mp.floor(quotient):
            return None
        return 1, -(mp.floor(quotient) if rounded is math.floor or quotient >= 0 else mp.ceil(quotient))

    return steps


def logistic_loss(w):
    return [
        (lambda p, q: p < 0, -q_times(w) * a + (1 - b + w * b) * log(1 + exp(a))),
        (lambda p, q: True, (1 - b) * a + (1 - b + w * b) * log(1 + exp(-a))),
    ]


def q_times(w):
    return w * b


both_zero = lambda p, q: p == 0 and q == 0
both_infinite = lambda p, q: math.isinf(p) and math.isinf(q)
lost_parity = lambda p, q: p < 0 and abs(q) >= 2**24  # q - 1 is q in float32
FUNCTIONS = {
    'div': Function(
        a / b,
        safe(lambda p, q: p / q if q != 0 else p * math.copysign(math.inf, q) if p != 0 else math.nan),
        held='a',
        kink=lambda p, q: both_zero(p, q) or both_infinite(p, q),
    ),
    'pow': Function(
        [
            (lambda p, q: not negative(p, q), exp(b * log(a))),
            (lambda p, q: whole(q) and q % 2 == 0, (-a) ** b),
            (lambda p, q: whole(q), -((-a) ** b)),
        ],
        power,
        held='b',
        # Infinite exponents: products of 0 and infinity, which every library leaves.
        kink=lambda p, q: math.isinf(q) or lost_parity(p, q),
        # Logarithms of negative numbers, conventions at 0, and products of 0 and infinity at infinity.
        by_second=lambda p, q: p <= 0 or math.isinf(p),
    ),
    'atan2': Function(sp.atan(a / b), safe(math.atan2), kink=both_zero),
    # The second derivative by the larger side is a difference of nearly equal numbers.
    'hypot': Function(sqrt(a * a + b * b), safe(math.hypot), second_kink=lambda p, q: 0 < min(abs(p), abs(q)) < max(abs(p), abs(q)) / 1e3 < math.inf),
    'fmod': Function([], safe(math.fmod), steps=quotient_steps(math.trunc)),
    'remainder': Function([], safe(floored), steps=quotient_steps(math.floor)),
    'maximum': Function([(lambda p, q: p > q, a), (lambda p, q: p < q, b)], larger, held='ab'),
    'minimum': Function([(lambda p, q: p > q, b), (lambda p, q: p < q, a)], smaller, held='ab'),
    'copysign': Function([(lambda p, q: p == 0 or q == 0, None), (lambda p, q: p * q > 0, a), (lambda p, q: True, -a)], math.copysign),
    'xlogy': Function(
        [(lambda p, q: not negative(q, p), a * log(b))],
        lambda p, q: math.nan if math.isnan(p) or math.isnan(q) or (math.isinf(p) and q == 1) else 0 if p == 0 else None,
        held='a',
        kink=lambda p, q: p == 0 and (q == 0 or math.isinf(q)),
    ),
    'logAddExp': Function(log(exp(a) + exp(b)), held='ab'),
}


def loss(formulas, by_second=lambda p, q: math.isinf(p), **more):
    """A loss: targets are finite and small, and nothing is promised of derivatives by them where the prediction is infinite."""
    return Function(formulas, by_second=by_second, largest=3, **{'held': 'ab', **more})


FUNCTIONS |= {
    'mseLoss': loss((a - b) ** 2),
    'l1Loss': loss([(lambda p, q: p > q, a - b), (lambda p, q: p < q, b - a)]),
    'huberLoss': loss(
        [(lambda p, q: abs(p - q) <= 1, (a - b) ** 2 / 2), (lambda p, q: p > q, a - b - sp.Rational(1, 2)), (at_most, b - a - sp.Rational(1, 2))],
        second_kink=lambda p, q: abs(p - q) == 1,
    ),
    'smoothL1Loss with beta': loss(
        [(lambda p, q: abs(p - q) <= 2, (a - b) ** 2 / 4), (lambda p, q: p > q, a - b - 1), (at_most, b - a - 1)],
        second_kink=lambda p, q: abs(p - q) == 2,
    ),
    'binaryCrossEntropyWithLogits': loss(logistic_loss(1)),
    'binaryCrossEntropyWithLogits with posWeight': loss(logistic_loss(3)),
    'softMarginLoss': loss(
        [(lambda p, q: p * q < 0, -a * b + softplus(a * b)), (lambda p, q: q != 0, softplus(-a * b)), (lambda p, q: math.isfinite(p), softplus(-a * b))]
    ),
    'hingeLoss': loss([(lambda p, q: p * q < 1, 1 - a * b), (lambda p, q: p * q > 1, ZERO * a)]),
    # Where exp(a) is infinite, and the product with it, there is no derivative by the target.
    'poissonNllLoss': loss([(lambda p, q: q >= 0, exp(a) - a * b)], by_second=lambda p, q: p > 1e30 or math.isinf(p)),
    'poissonNllLoss of rates': loss([(lambda p, q: q >= 0 and not negative(p, q), a - b * log(a + sp.Rational(1, 10**8)))]),
    # The prediction and the variance, of the target 0.
    'gaussianNllLoss': Function([(lambda p, q: q > 1e-6, (log(b) + a**2 / b) / 2)], held='a', kink=lambda p, q: math.isinf(q)),
    'klDiv': loss([(lambda p, q: not negative(q, p), b * log(b) - a * b)], held='a'),
    'klDiv with logTarget': Function(
        [(lambda p, q: q <= 3, exp(b) * (b - a))], held='ab', kink=lambda p, q: math.isinf(p), by_second=lambda p, q: math.isinf(p)
    ),
}


def evaluated(f, p, q):
    try:
        value = f(p, q)
    except ZeroDivisionError:
        return None
    if isinstance(value, mp.mpc):
        if value.imag != 0:
            return None
        value = value.real
    value = mp.mpf(value)
    return None if mp.isnan(value) else value


def limit(values):
    """Where three values, ever nearer to a point, go; None if nowhere."""
    if any(value is None for value in values):
        return None
    p, q, r = values
    if q == r or abs(r - q) < mp.mpf(10) ** -25 * abs(r):
        return r
    if mp.sign(q) == mp.sign(r) and abs(r) > 1e15 and abs(r) > abs(q):
        return mp.inf if r > 0 else -mp.inf
    if mp.sign(q) == mp.sign(r) and abs(r) > 60 and abs(r) > 1.5 * abs(q) > 1.5 * abs(p):
        return mp.inf if r > 0 else -mp.inf  # a logarithm
    return mp.mpf(0) if abs(r) < 1e-9 and abs(r) <= abs(q) else None


# Speeds at which both numbers go to their limits.
SPEEDS = [(1, 1, 1), (1, 1, 3), (1, 2, 1), (2, 1, 1)]


def near(value, held, size, factor):
    """A number of `size` steps beside a limit."""
    if value == 0 and not held:
        return mp.mpf(math.copysign(1, value)) * factor * mp.mpf(10) ** -size
    if math.isinf(value):
        return mp.mpf(math.copysign(1, value)) * factor * mp.mpf(10) ** size
    return mp.mpf(value)


def derived(function, order, p, q):
    lambdas = function.lambdas(p, q)
    if lambdas is None:
        return None
    held = ['a' in function.held, 'b' in function.held]
    results = []
    for fast_a, fast_b, factor in SPEEDS:
        steps = [(near(p, held[0], k * fast_a, 1), near(q, held[1], k * fast_b, factor)) for k in (40, 60, 90)]
        found = limit([evaluated(lambdas[order], *step) for step in steps])
        if found is None:
            return None
        results.append(found)
    first = results[0]
    agree = all(r == first or abs(r - first) <= mp.mpf(10) ** -20 * abs(first) for r in results)
    return first if agree else None


def exact(function, order, p, q):
    if order == 0 and function.value is not None:
        known = function.value(p, q)
        if known is not None:
            return known
    if math.isnan(p) or math.isnan(q):
        return mp.nan if order == 0 else None
    if abs(q) > function.largest:
        return None
    if order > 0 and (function.kink(p, q) or (order > 2 and function.second_kink(p, q))):
        return None
    if b in ORDERS[order][1] and function.by_second(p, q):
        return None
    with mp.workdps(DIGITS):
        if function.steps is not None:
            slopes = function.steps(p, q)
            return None if slopes is None else (*slopes, 0, 0, 0)[order - 1]
        return derived(function, order, p, q)


def text(value):
    if value is None:
        return NOTHING
    value = mp.mpf(value)
    if mp.isnan(value):
        return 'nan'
    if abs(value) > mp.mpf(10) ** 309:
        return 'inf' if value > 0 else '-inf'
    if abs(value) < mp.mpf(10) ** -320:
        return '0'
    digits = repr(float(value))
    return digits[:-2] if digits.endswith('.0') else digits


def short(words):
    """Equal words in a row once, with how many there are."""
    out = []
    for word in words:
        if out and out[-1][0] == word:
            out[-1][1] += 1
        else:
            out.append([word, 1])
    return ' '.join(word if n == 1 else f'{word}*{n}' for word, n in out)


def main():
    print('''/**
 * Functions of two numbers, and losses of a prediction and a target, with their derivatives up to the second order at special points: zeros, numbers
 * around 1, the smallest normal float32 and one below it, the largest, infinities, NaN. tooling/goldens/special_pairs.py writes this file with mpmath.
 *
 * The first line has the points, numbers of float32. Each other one has a function's name, by what it was differentiated ("fab": by both), and the values
 * at all pairs of points, the second number faster. "nan*3" is NaN three times. At zeros and infinities they are limits, from the side of a signed zero. A dot stands where nothing is promised: at a
 * kink, outside of the domain, and where the limit depends on the path.
 */
export const specialPairsTable = `''')
    print('points | f |', ' '.join('-0' if str(p) == '-0.0' else text(p) for p in POINTS))
    for name, function in FUNCTIONS.items():
        for order, (label, _) in enumerate(ORDERS):
            words = [text(exact(function, order, p, q)) for p in POINTS for q in POINTS]
            print(name, '|', label, '|', short(words), flush=True)
    print('`;')


main()
