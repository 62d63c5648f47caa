"""What a golden case is, and how torch computes it."""

import re

import numpy as np
import torch

from draw import DTYPES, T, U, numbers, seed_of

CASES = []
PROBLEMS = []
FLOATS = ('float64', 'float32', 'float16', 'bfloat16')


class Case:
    def __init__(self, op, label, args, options, grad, second, dtypes, terms, special):
        self.op, self.label, self.args, self.options = op, label, args, options
        self.grad, self.second, self.dtypes, self.terms, self.special = grad, second, dtypes, terms, special

    @property
    def name(self):
        return f'{self.op} / {self.label}'


def show(value):
    if isinstance(value, T):
        return 'x'.join(map(str, value.shape)) or 'scalar'
    if isinstance(value, (list, tuple)):
        return '[' + ','.join(show(v) for v in value) + ']'
    if isinstance(value, dict):
        return '{' + ', '.join(f'{k} {show(v)}' for k, v in value.items()) + '}'
    if value is None:
        return 'null'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


SEEN = {}


def add(op, args, options=None, grad=True, second=True, dtypes=('float64', 'float32'), terms=None, special=False, note=''):
    """One case: Polygrad's call `op(...args, options)`.

    grad: differentiate by every tensor of the case's dtype; second: also twice. terms: how many products or terms a result
    element sums, for the gamma_K rule. special: NaN and infinities are meant (otherwise they are reported as a mistake).
    """
    options = options or {}
    if isinstance(dtypes, str):
        dtypes = (dtypes,)
    words = [show(a) for a in args] + [f'{k} {show(v)}' for k, v in options.items()]
    label = re.sub(r'\s+', ' ', ', '.join(words))
    if note:
        label = f'{note}: {label}'
    if tuple(dtypes) != ('float64', 'float32'):
        label += f' ({" ".join(dtypes)})'
    name = f'{op} / {label}'
    SEEN[name] = SEEN.get(name, 0) + 1
    if SEEN[name] > 1:
        label += f' #{SEEN[name]}'
    grad = grad and not special and 'float64' in dtypes
    CASES.append(Case(op, label, args, options, grad, second and grad, dtypes, terms, special))


def outputs(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for r in result for t in outputs(r)]


def compute(case, table, numbers_out):
    """Runs torch; returns the description of the case for the index and appends its numbers."""
    tensors, abouts, leaves, blocks = [], [], [], []

    def resolve(value):
        if isinstance(value, T):
            k = len(tensors)
            t, about = value.make(f'{case.name}/{k}', case.dtypes[0])
            if value.kind[0] == 'b':
                blocks.append(value.kind[1])
            if case.grad and value.grad and t.is_floating_point():
                t.requires_grad_()
                leaves.append(k)
            tensors.append(t)
            abouts.append(about)
            return t, {'t': k}
        if isinstance(value, (list, tuple)):
            pairs = [resolve(v) for v in value]
            return [p[0] for p in pairs], [p[1] for p in pairs]
        if isinstance(value, dict):
            pairs = {k: resolve(v) for k, v in value.items()}
            return {k: p[0] for k, p in pairs.items()}, {k: p[1] for k, p in pairs.items()}
        if isinstance(value, float) and not np.isfinite(value):
            return value, {'n': str(value)}
        return value, value

    resolved = [resolve(a) for a in case.args]
    options = {k: resolve(v) for k, v in case.options.items()}
    call = table[case.op]
    values = [r[0] for r in resolved]
    named = {k: v[0] for k, v in options.items()}
    outs = outputs(call(*values, **named))

    entry = {'n': case.label, 'a': [r[1] for r in resolved], 't': abouts}
    if options:
        entry['o'] = {k: v[1] for k, v in options.items()}
    if case.dtypes != ('float64', 'float32'):
        entry['d'] = list(case.dtypes)
    described = []
    for out in outs:
        kind = (
            'same'
            if out.dtype == torch.float64 and case.op != 'cast'
            else next(k for k, d in DTYPES.items() if d == out.dtype)
        )
        data = out.detach()
        about = [list(out.shape), kind]
        if not out.is_floating_point() and data.numel() and data.to(torch.int64).abs().max() > 2**36:
            about.append([str(int(v)) for v in data.reshape(-1)])
        else:
            array = data.to(torch.float64).contiguous().numpy()
            blocks.append(array)
            if not case.special and not np.isfinite(array).all():
                PROBLEMS.append(f'{case.name}: value is not finite')
        described.append(about)
    entry['r'] = described

    if case.terms:
        entry['k'] = case.terms
        with torch.no_grad():
            absolute = [t.abs() if t.is_floating_point() else t for t in tensors]
            it = iter(absolute)

            def swap(v):
                if isinstance(v, T):
                    return next(it)
                if isinstance(v, (list, tuple)):
                    return [swap(x) for x in v]
                if isinstance(v, dict):
                    return {k: swap(x) for k, x in v.items()}
                return v

            sizes = outputs(call(*[swap(a) for a in case.args], **{k: swap(v) for k, v in case.options.items()}))
        # Rounded down to 8 significant bits: the allowance is never larger than the rule's.
        words = sizes[0].abs().to(torch.float32).contiguous().numpy().view(np.uint32) & np.uint32(0xFFFF0000)
        blocks.append(words.view(np.float32).astype(np.float64))

    # Every floating-point result has a cotangent.
    through = [i for i, o in enumerate(outs) if o.requires_grad]
    if leaves and through:
        loss = 0
        for i in [i for i, o in enumerate(outs) if o.is_floating_point()]:
            n = outs[i].numel()
            w = torch.tensor(numbers(U(0.5, 1.5), seed_of(f'{case.name}/w{i}'), n)).reshape(outs[i].shape)
            loss = loss + (outs[i] * w).sum()
        xs = [tensors[k] for k in leaves]

        def slopes(y, what, **more):
            got = torch.autograd.grad(y, xs, allow_unused=True, **more)
            # torch hands out zeros without memory behind them; adding makes them real.
            got = [torch.zeros_like(x) + (0 if g is None else g) for g, x in zip(got, xs)]
            for g in got:
                if not torch.isfinite(g).all():
                    PROBLEMS.append(f'{case.name}: {what} is not finite')
            return got

        first = slopes(loss, 'gradient', create_graph=case.second)
        entry['g'] = leaves
        blocks.extend(g.detach().numpy() for g in first)
        if case.second:
            try:
                probe = 0
                for k, g in zip(leaves, first):
                    v = torch.tensor(numbers(U(0.5, 1.5), seed_of(f'{case.name}/v{k}'), g.numel())).reshape(g.shape)
                    probe = probe + (g * v).sum()
                if probe.requires_grad:
                    second = slopes(probe, 'second product')
                else:
                    second = [torch.zeros_like(x) for x in xs]
                entry['h'] = 1
                blocks.extend(h.detach().numpy() for h in second)
            except (RuntimeError, NotImplementedError) as error:
                NO_SECOND.setdefault(case.op, str(error).split('\n')[0][:100])
    numbers_out.extend(blocks)
    return entry


NO_SECOND = {}
