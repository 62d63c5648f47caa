"""Writes what PyTorch makes of optimizers and schedules, for packages/nn/src/optim/torch-optimizers.test.ts: python3 optimizers.py FOLDER.

Parameters [2, 3] and [3] begin with `value(1)` and `value(2)`. The gradient of parameter i at step t is `value(3 + 2 t + i)` plus 0.3 times the
parameter, so that steps depend on each other. Each case holds both parameters after steps 1, 5 and 25, in float64. L-BFGS minimises a sum of
Rosenbrock's functions; its cases hold the parameters after each of three calls. Schedules are rates, one per step.
"""
import json
import struct
import sys

import torch
from torch.optim import lr_scheduler as schedules

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
found = {}


def value(k, *shape):
    count = 1
    for n in shape:
        count *= n
    j = torch.arange(count)
    return (((37 * j + 11 * k) % 101 - 50) / 60).double().reshape(shape)


def parameters():
    return [value(1, 2, 3).requires_grad_(), value(2, 3).requires_grad_()]


def flat(ps):
    return torch.cat([p.detach().flatten() for p in ps])


def case(name, make, schedule=None):
    ps = parameters()
    optimizer, kept = make(ps), []
    scheduler = schedule and schedule(optimizer)
    for t in range(25):
        for i, p in enumerate(ps):
            p.grad = value(3 + 2 * t + i, *p.shape) + 0.3 * p.detach()
        optimizer.step()
        if scheduler:
            scheduler.step()
        if t in (0, 4, 24):
            kept.append(flat(ps).clone())
    found[name] = torch.cat(kept)


o = torch.optim
case('SGD', lambda p: o.SGD(p, 0.1))
case('SGD with momentum', lambda p: o.SGD(p, 0.1, momentum=0.9, weight_decay=0.1))
case('SGD with the momentum of Nesterov', lambda p: o.SGD(p, 0.1, momentum=0.9, nesterov=True))
case('Adam', lambda p: o.Adam(p))
case('Adam with all options', lambda p: o.Adam(p, 0.05, betas=(0.8, 0.9), eps=1e-5, weight_decay=0.1))
case('AdamW', lambda p: o.AdamW(p))
case('AdamW with all options', lambda p: o.AdamW(p, 0.05, betas=(0.8, 0.9), eps=1e-5, weight_decay=0.3))
case('RMSProp', lambda p: o.RMSprop(p))
case('RMSProp with all options', lambda p: o.RMSprop(p, 0.05, alpha=0.9, eps=1e-5, weight_decay=0.1, momentum=0.5, centered=True))
case('Adagrad', lambda p: o.Adagrad(p))
case('Adagrad with all options', lambda p: o.Adagrad(p, 0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.3, eps=1e-5))
case('Adadelta', lambda p: o.Adadelta(p))
case('Adadelta with all options', lambda p: o.Adadelta(p, 0.5, rho=0.8, eps=1e-5, weight_decay=0.1))
case('SGD with dampening', lambda p: o.SGD(p, 0.1, momentum=0.9, dampening=0.3, weight_decay=0.1))
case('SGD climbing', lambda p: o.SGD(p, 0.1, momentum=0.5, weight_decay=0.1, maximize=True))
case('Adam climbing', lambda p: o.Adam(p, 0.05, weight_decay=0.1, maximize=True))
case('AdamW climbing', lambda p: o.AdamW(p, 0.05, maximize=True))
case('RMSProp climbing', lambda p: o.RMSprop(p, 0.05, maximize=True))
case('Adagrad climbing', lambda p: o.Adagrad(p, 0.05, maximize=True))
case('Adadelta climbing', lambda p: o.Adadelta(p, 0.5, maximize=True))
case('AMSGrad', lambda p: o.Adam(p, 0.05, betas=(0.8, 0.9), weight_decay=0.1, amsgrad=True))
case('AMSGrad, decoupled', lambda p: o.AdamW(p, 0.05, weight_decay=0.1, amsgrad=True))
case('Adamax', lambda p: o.Adamax(p, weight_decay=0.1))
case('Adamax climbing', lambda p: o.Adamax(p, 0.05, betas=(0.8, 0.9), maximize=True))
# Not NAdam, which multiplies by one momentum twice in 1.13 (`mu_product_next`); later versions and the paper do not.
case('RAdam', lambda p: o.RAdam(p, weight_decay=0.1))
case('RAdam with all options', lambda p: o.RAdam(p, 0.05, betas=(0.8, 0.9), eps=1e-5))
case('Rprop', lambda p: o.Rprop(p))
case('Rprop with all options', lambda p: o.Rprop(p, 0.05, etas=(0.6, 1.5), step_sizes=(1e-3, 0.2)))
case('Rprop climbing', lambda p: o.Rprop(p, 0.05, maximize=True))
case('groups', lambda p: o.Adam([{'params': p[:1], 'lr': 0.1}, {'params': p[1:], 'weight_decay': 0.1}], 0.05))


one_cycle = lambda p: schedules.OneCycleLR(p, 0.1, 25)
case('SGD in one cycle', lambda p: o.SGD(p, 0.1, momentum=0.9, nesterov=True), one_cycle)
case('Adam in one cycle', lambda p: o.Adam(p, 0.1), one_cycle)
case('SGD in cycles', lambda p: o.SGD(p, 0.1, momentum=0.9), lambda p: schedules.CyclicLR(p, 0.01, 0.1, 4, 3, 'triangular2'))
case('RMSProp in cycles', lambda p: o.RMSprop(p, 0.1, momentum=0.9), lambda p: schedules.CyclicLR(p, 0.01, 0.1, 4, base_momentum=0.5))


def lbfgs(name, **options):
    ps = parameters()
    optimizer, kept = o.LBFGS(ps, max_iter=8, **options), []

    def closure():
        optimizer.zero_grad()
        x = torch.cat([p.flatten() for p in ps])
        loss = ((1 - x[:-1]) ** 2 + 10 * (x[1:] - x[:-1] ** 2) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(3):
        kept.append(torch.tensor([float(optimizer.step(closure))]))
        kept.append(flat(ps).clone())
    found[name] = torch.cat(kept)


lbfgs('LBFGS', lr=0.05, history_size=4)
lbfgs('LBFGS with a line search', line_search_fn='strong_wolfe')


def rates(name, lr, make, count=40, kind='lr'):
    optimizer = o.SGD(parameters(), lr, momentum=0.5)
    schedule, kept = make(optimizer), []
    for _ in range(count):
        kept.append(optimizer.param_groups[0][kind])
        optimizer.step()
        schedule.step()
    found[name] = torch.tensor(kept)


s = schedules
rates('linearRate', 0.1, lambda p: s.LinearLR(p, 0.25, 0.9, 10))
rates('heldRate', 0.1, lambda p: s.ConstantLR(p, 0.5, 7))
for mode in ('triangular', 'triangular2', 'exp_range'):
    rates(f'cyclicRate {mode}', 0.1, lambda p: s.CyclicLR(p, 0.01, 0.1, 4, 3, mode, 0.95, cycle_momentum=False))
rates('cosineRestarts', 0.1, lambda p: s.CosineAnnealingWarmRestarts(p, 5, 2, 0.01))
rates('oneCycle of three phases', 0.1, lambda p: s.OneCycleLR(p, 0.1, 30, three_phase=True, cycle_momentum=False), 30)
rates('oneCycle in lines', 0.1, lambda p: s.OneCycleLR(p, 0.1, 30, pct_start=0.4, anneal_strategy='linear', cycle_momentum=False), 30)
rates('cyclicMomentum', 0.1, lambda p: s.CyclicLR(p, 0.01, 0.1, 4, 3, 'exp_range', 0.95), 40, 'momentum')
rates('oneCycleMomentum', 0.1, lambda p: s.OneCycleLR(p, 0.1, 30), 30, 'momentum')
rates('oneCycleMomentum of three phases', 0.1, lambda p: s.OneCycleLR(p, 0.1, 30, three_phase=True, anneal_strategy='linear'), 30, 'momentum')
rates('sequentialRates', 0.1, lambda p: s.SequentialLR(p, [s.LinearLR(p, 0.1, 1, 5), s.ExponentialLR(p, 0.9)], [8]))
rates('chainedRates', 0.1, lambda p: s.ChainedScheduler([s.ConstantLR(p, 0.1, 5), s.ExponentialLR(p, 0.9)]))


def plateau(name, sign, **options):
    optimizer = o.SGD(parameters(), 0.1)
    schedule, kept = s.ReduceLROnPlateau(optimizer, **options), []
    for t in range(40):
        schedule.step(sign * (1 / (1 + min(t, 9)) + (t * 7 % 5) / 50))
        kept.append(optimizer.param_groups[0]['lr'])
    found[name] = torch.tensor(kept)


plateau('ReduceOnPlateau', 1, patience=2, factor=0.5)
plateau('ReduceOnPlateau upwards', -1, mode='max', patience=1, factor=0.3, threshold=0.05, threshold_mode='abs', cooldown=2, min_lr=0.002)

for order in (1.0, 3.0, float('inf')):
    ps = parameters()
    for p in ps:
        p.grad = p.detach().clone()
    norm = torch.nn.utils.clip_grad_norm_(ps, 0.5, order)
    found[f'clipGradNorms of order {order:g}'] = torch.cat([norm.reshape(1), flat([p.grad for p in ps])])

header, data = {}, b''
for name, numbers in found.items():
    raw = numbers.double().numpy().tobytes()
    header[name] = {'dtype': 'F64', 'shape': list(numbers.shape), 'data_offsets': [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
with open(f'{sys.argv[1]}/torch.safetensors', 'wb') as file:
    file.write(struct.pack('<Q', len(text)) + text + data)
print(f'{len(found)} cases, {len(data)} bytes')
