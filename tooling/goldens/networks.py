"""Losses, attention, embeddings.

Left out, because the documented contract differs from torch there:
- a fully masked row of attention: NaN in torch 1.13, zeros here;
- slopes of losses at their kinks (l1 at equality, hinge at the margin), where both choose.
"""

import math

import torch
import torch.nn.functional as F

from cases import add
from draw import AWAY, GRID, I, LIT, OF, T, U


def long(t):
    return t.to(torch.int64) if not t.is_floating_point() else t


def finish(x, reduction):
    return x.mean() if reduction == 'mean' else x.sum() if reduction == 'sum' else x


def kl(x, y, reduction='mean', logTarget=False):
    return F.kl_div(x, y, reduction={'batchMean': 'batchmean'}.get(reduction, reduction), log_target=logTarget)


def cross_entropy(x, y, weight=None, ignoreIndex=-100, reduction='mean', labelSmoothing=0.0):
    return F.cross_entropy(x, long(y), weight, ignore_index=ignoreIndex, reduction=reduction, label_smoothing=labelSmoothing)


def bce_logits(x, y, weight=None, posWeight=None, reduction='mean'):
    if isinstance(posWeight, (int, float)):
        posWeight = torch.tensor(float(posWeight), dtype=x.dtype)
    return F.binary_cross_entropy_with_logits(x, y, weight, reduction=reduction, pos_weight=posWeight)


def hinge(x, y, margin=1.0, reduction='mean'):
    return finish(torch.clamp(margin - x * y, min=0), reduction)


def attention(q, k, v, mask=None, causal=False, scale=None):
    scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ v


def bag(indices, weight, mode='mean', offsets=None, perSampleWeights=None, paddingIdx=None):
    offsets = None if offsets is None else long(offsets)
    return F.embedding_bag(long(indices), weight, offsets, mode=mode, per_sample_weights=perSampleWeights, padding_idx=paddingIdx)


def triplet(anchor, positive, negative, **o):
    return F.triplet_margin_loss(anchor, positive, negative, **o)


CALLS = {
    'mseLoss': lambda x, y, reduction='mean': F.mse_loss(x, y, reduction=reduction),
    'l1Loss': lambda x, y, reduction='mean': F.l1_loss(x, y, reduction=reduction),
    'huberLoss': lambda x, y, delta=1.0, reduction='mean': F.huber_loss(x, y, delta=delta, reduction=reduction),
    'smoothL1Loss': lambda x, y, beta=1.0, reduction='mean': F.smooth_l1_loss(x, y, beta=beta, reduction=reduction),
    'binaryCrossEntropy': lambda x, y, weight=None, reduction='mean': F.binary_cross_entropy(x, y, weight, reduction=reduction),
    'binaryCrossEntropyWithLogits': bce_logits,
    'klDiv': kl,
    'nllLoss': lambda x, y, weight=None, ignoreIndex=-100, reduction='mean': F.nll_loss(x, long(y), weight, ignore_index=ignoreIndex, reduction=reduction),
    'crossEntropy': cross_entropy,
    'hingeLoss': hinge,
    'cosineEmbeddingLoss': lambda a, b, y, margin=0.0, reduction='mean': F.cosine_embedding_loss(a, b, y, margin, reduction=reduction),
    'gaussianNllLoss': lambda x, y, v, full=False, eps=1e-6, reduction='mean': F.gaussian_nll_loss(x, y, v, full=full, eps=eps, reduction=reduction),
    'tripletMarginLoss': triplet,
    'softMarginLoss': F.soft_margin_loss,
    'hingeEmbeddingLoss': F.hinge_embedding_loss,
    'marginRankingLoss': F.margin_ranking_loss,
    'poissonNllLoss': lambda x, y, logInput=True, full=False, eps=1e-8, reduction='mean': F.poisson_nll_loss(x, y, logInput, full, eps=eps, reduction=reduction),
    'multiMarginLoss': lambda x, y, p=1, margin=1.0, weight=None, reduction='mean': F.multi_margin_loss(x, long(y), p, margin, weight, reduction=reduction),
    'multiLabelMarginLoss': lambda x, y, reduction='mean': F.multilabel_margin_loss(x, long(y), reduction=reduction),
    'multiLabelSoftMarginLoss': F.multilabel_soft_margin_loss,
    'scaledDotProductAttention': attention,
    'embeddingBag': bag,
}

REDUCTIONS = ('mean', 'sum', 'none')


def cases():
    for s in ([5], [3, 4], [2, 2, 3]):
        pair = lambda: [T(s, U(-2, 2), expand=False), T(s, U(-2, 2), expand=False)]
        for how in REDUCTIONS:
            o = {'reduction': how}
            add('mseLoss', pair(), o)
            add('l1Loss', pair(), o)
            add('huberLoss', pair(), o)
            add('smoothL1Loss', pair(), o)
            add('binaryCrossEntropy', [T(s, U(0.05, 0.95)), T(s, U(0, 1), grad=False)], o)
            add('binaryCrossEntropyWithLogits', [T(s, U(-4, 4)), T(s, U(0, 1), grad=False)], o)
            add('klDiv', [T(s, U(-3, -0.1)), T(s, U(0.1, 0.9))], o)
            add('klDiv', [T(s, U(-3, -0.1)), T(s, U(-3, -0.1))], {**o, 'logTarget': True})
            add('hingeLoss', [T(s, U(-2, 2)), T(s, OF(-1, 1), grad=False)], o)
        add('huberLoss', pair(), {'delta': 0.5})
        add('smoothL1Loss', pair(), {'beta': 0.25})
        add('klDiv', [T(s, U(-3, -0.1)), T(s, U(0.1, 0.9))], {'reduction': 'batchMean'})
        add('hingeLoss', [T(s, U(-2, 2)), T(s, OF(-1, 1), grad=False)], {'margin': 0.3})
        add('binaryCrossEntropy', [T(s, U(0.05, 0.95)), T(s, OF(0, 1), grad=False)], {'weight': T(s, U(0.5, 2), grad=False)})
        add('binaryCrossEntropyWithLogits', [T(s, U(-4, 4)), T(s, OF(0, 1), grad=False)], {'weight': T(s, U(0.5, 2), grad=False), 'posWeight': 2.5})
        add('binaryCrossEntropyWithLogits', [T(s, U(-4, 4)), T(s, OF(0, 1), grad=False)], {'posWeight': T(s[-1:], U(0.5, 2), grad=False)})
    add('binaryCrossEntropyWithLogits', [T([4], LIT(200, -200, 50, -50)), T([4], LIT(1, 0, 0, 1), grad=False)], {'reduction': 'none'}, note='far out')
    add('klDiv', [T([4], U(-3, -0.1)), T([4], LIT(0, 0.5, 0, 0.5), grad=False)], note='zeros in the target')
    classes()
    for how in REDUCTIONS:
        o = {'reduction': how}
        vectors = lambda: T([4, 3], AWAY(0.2, 2), expand=False)
        add('cosineEmbeddingLoss', [vectors(), vectors(), T([4], LIT(1, -1, 1, -1), grad=False)], o)
        add('cosineEmbeddingLoss', [vectors(), vectors(), T([4], LIT(1, -1, 1, -1), grad=False)], {**o, 'margin': 0.3})
        add('gaussianNllLoss', [T([3, 4]), T([3, 4]), T([3, 4], U(0.3, 2))], o)
        add('gaussianNllLoss', [T([3, 4]), T([3, 4]), T([3, 1], U(0.3, 2))], {**o, 'full': True})
        three = lambda: [vectors(), vectors(), vectors()]
        add('tripletMarginLoss', three(), o)
        add('tripletMarginLoss', three(), {**o, 'margin': 3.5})
        add('tripletMarginLoss', three(), {**o, 'margin': 4.0, 'swap': True})
        add('tripletMarginLoss', three(), {**o, 'margin': 4.0, 'p': 3.0})
        signs = lambda: T([3, 4], OF(-1, 1), grad=False)
        add('softMarginLoss', [T([3, 4], U(-2, 2)), signs()], o)
        add('hingeEmbeddingLoss', [T([3, 4], U(-2, 2)), signs()], o)
        add('marginRankingLoss', [T([3, 4], U(-2, 2)), T([3, 4], U(-2, 2)), signs()], {**o, 'margin': 0.3})
        add('poissonNllLoss', [T([3, 4], U(-2, 2)), T([3, 4], U(0, 5), grad=False)], o)
        add('poissonNllLoss', [T([3, 4], U(0.2, 4)), T([3, 4], U(0, 5), grad=False)], {**o, 'logInput': False, 'full': True})
        # The second derivative of these two is not made in 1.13.
        add('multiMarginLoss', [T([3, 4], U(-2, 2), expand=False), T([3], I(0, 3), dtype='int32')], o, second=False)
        add('multiMarginLoss', [T([3, 4], U(-2, 2), expand=False), T([3], I(0, 3), dtype='int32')], {**o, 'p': 2, 'margin': 0.5, 'weight': T([4], U(0.5, 2), grad=False)}, second=False)
        add('multiLabelMarginLoss', [T([2, 4], U(-2, 2), expand=False), T([2, 4], LIT(1, 3, -1, 0, 2, -1, 2, 2), dtype='int32')], o, second=False)
        add('multiLabelSoftMarginLoss', [T([3, 4], U(-2, 2)), T([3, 4], U(0, 1), grad=False)], o)
    for s in ([2, 3, 4], [2, 2, 3, 4], [1, 1, 2]):
        q = lambda n=s[-2]: T([*s[:-2], n, s[-1]])
        add('scaledDotProductAttention', [q(), q(5), q(5)])
        add('scaledDotProductAttention', [q(), q(), q()], {'causal': True})
        add('scaledDotProductAttention', [q(), q(5), q(5)], {'scale': 0.3})
        mask = T([s[-2], 5], LIT(*([1, 0, 1, 1, 0] * s[-2])), dtype='bool')
        add('scaledDotProductAttention', [q(), q(5), q(5)], {'mask': mask})
        add('scaledDotProductAttention', [q(), q(5), q(5)], {'mask': T([s[-2], 5], U(-2, 2), grad=False)})
    for mode in ('sum', 'mean', 'max'):
        add('embeddingBag', [T([3, 4], I(0, 5), dtype='int32'), T([6, 2], expand=False)], {'mode': mode}, second=False)
        add('embeddingBag', [T([7], I(0, 5), dtype='int32'), T([6, 2], expand=False)], {'mode': mode, 'offsets': T([3], LIT(0, 2, 6), dtype='int32')}, second=False)
        add('embeddingBag', [T([3, 4], I(0, 5), dtype='int32'), T([6, 2], expand=False)], {'mode': mode, 'paddingIdx': 2}, second=False)
        add('embeddingBag', [T([2, 1], I(0, 5), dtype='int32'), T([6, 3], expand=False)], {'mode': mode}, second=False)

    add('embeddingBag', [T([3, 4], I(0, 5), dtype='int32'), T([6, 2], expand=False)], {'mode': 'sum', 'perSampleWeights': T([3, 4])}, second=False)


def classes():
    index = lambda s, n: T(s, I(0, n - 1), dtype='int32')
    for s, y in (([4, 3], [4]), ([2, 3, 4], [2, 4]), ([2, 3, 2, 2], [2, 2, 2])):
        for how in REDUCTIONS:
            o = {'reduction': how}
            logs = lambda: T(s, U(-3, -0.1))
            add('nllLoss', [logs(), index(y, 3)], o)
            add('nllLoss', [logs(), index(y, 3)], {**o, 'weight': T([3], U(0.5, 2), grad=False)})
            add('crossEntropy', [T(s, U(-3, 3)), index(y, 3)], o)
            add('crossEntropy', [T(s, U(-3, 3)), index(y, 3)], {**o, 'weight': T([3], U(0.5, 2), grad=False)})
            add('crossEntropy', [T(s, U(-3, 3)), index(y, 3)], {**o, 'labelSmoothing': 0.1})
        add('crossEntropy', [T(s, U(-3, 3)), index(y, 3)], {'ignoreIndex': 1, 'reduction': 'sum'})
        add('nllLoss', [T(s, U(-3, -0.1)), index(y, 3)], {'ignoreIndex': 2, 'reduction': 'none'})
        add('crossEntropy', [T(s, U(-3, 3)), index(y, 3)], {'labelSmoothing': 0.2, 'weight': T([3], U(0.5, 2), grad=False)})
        add('crossEntropy', [T(s, U(-3, 3)), T(s, U(0, 0.6), grad=False)])
        add('crossEntropy', [T(s, U(-3, 3)), T(s, U(0, 0.6), grad=False)], {'labelSmoothing': 0.1, 'reduction': 'sum'})
    add('crossEntropy', [T([2, 3], LIT(30, -30, 0, -40, 1, 40)), T([2], LIT(1, 2), dtype='int32')], note='far out')
    for dtype in ('float16', 'bfloat16'):
        add('crossEntropy', [T([4, 6], GRID(-32, 32, 16)), index([4], 6)], dtypes=dtype)
    add('crossEntropy', [T([3], U(-3, 3)), T([], LIT(1), dtype='int32')])
