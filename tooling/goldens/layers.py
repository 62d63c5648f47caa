"""Writes what PyTorch makes of layers, for packages/nn/src/layers/torch-layers.test.ts: python3 layers.py FOLDER.

Parameter i (from 1) of a layer, and input i (from 0), have the values of `value`, which the test makes too. For each case the file holds one list of
numbers, in float32 of what float64 gave: outputs, gradients of the inputs, of the parameters, and buffers afterwards. The loss is the sum of outputs
times `value(50 + i)`. The metadata are the names of parameters and buffers.
"""
import json
import struct
import sys

import torch
from torch import nn
from torch.nn.utils import spectral_norm, weight_norm

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
found, names = {}, {}


def value(k, *shape):
    count = 1
    for n in shape:
        count *= n
    j = torch.arange(count)
    return (((37 * j + 11 * k) % 101 - 50) / 60).double().reshape(shape)


def case(name, layer, *inputs, call=None):
    given = []
    for i, x in enumerate(inputs):
        if isinstance(x, (tuple, list)):
            x = value(i * 20, *x)
        given.append(x.requires_grad_() if x.is_floating_point() else x)
    for i, p in enumerate(layer.parameters()):
        p.data = value(i + 1, *p.shape)
    outputs = (call or (lambda m, *xs: m(*xs)))(layer, *given)
    if isinstance(outputs, torch.Tensor):
        outputs = (outputs,)
    loss = sum((y * value(50 + i, *y.shape)).sum() for i, y in enumerate(outputs) if y.is_floating_point())
    loss.backward()
    zeros = lambda t: torch.zeros_like(t) if t.grad is None else t.grad
    parts = [*outputs, *[zeros(x) for x in given if x.is_floating_point()], *[zeros(p) for p in layer.parameters()]]
    # Counts of batches are kept only where something depends on them: where the momentum is None.
    counted = any(isinstance(m, nn.modules.batchnorm._BatchNorm) and m.momentum is None for m in layer.modules())
    buffers = [(n, b) for n, b in layer.named_buffers() if counted or not n.endswith('num_batches_tracked')]
    parts += [b for _, b in buffers]
    assert name not in found
    found[name] = torch.cat([p.detach().double().flatten() for p in parts]).float()
    names[name] = ','.join([n for n, _ in layer.named_parameters()] + [n for n, _ in buffers])


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def ints(*values):
    return torch.tensor(values)


case('Conv1d', nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), [2, 4, 7])
case('Conv3d', nn.Conv3d(2, 3, (2, 3, 2), padding=1, dilation=(1, 1, 2), bias=False), [1, 2, 3, 4, 3])
case('ConvTranspose1d', nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), [2, 4, 5])
case('ConvTranspose3d', nn.ConvTranspose3d(2, 3, 2, stride=(1, 2, 2)), [1, 2, 2, 3, 2])
case('BatchNorm1d of rows', nn.BatchNorm1d(3), [5, 3])
case('BatchNorm1d of lines', nn.BatchNorm1d(3, eps=1e-3, momentum=0.3), [2, 3, 4])
case('BatchNorm1d in evaluation', nn.BatchNorm1d(3).eval(), [2, 3, 4])



def twice(m, x):
    """Two batches in training, then one in evaluation, on which the statistics tell."""
    m(x * 0.5 + 1)
    y = m(x)
    return y, m.eval()(x)


for name, layer, shape in (
    ('BatchNorm1d of all batches', nn.BatchNorm1d(3, momentum=None), [4, 3]),
    ('BatchNorm2d of all batches', nn.BatchNorm2d(2, momentum=None, affine=False), [2, 2, 3, 2]),
    ('BatchNorm3d of all batches', nn.BatchNorm3d(2, momentum=None), [2, 2, 2, 1, 2]),
    ('BatchNorm1d without statistics', nn.BatchNorm1d(3, track_running_stats=False), [2, 3, 4]),
    ('BatchNorm2d without statistics', nn.BatchNorm2d(2, track_running_stats=False), [2, 2, 3, 2]),
    ('BatchNorm3d without statistics', nn.BatchNorm3d(2, momentum=None, track_running_stats=False), [2, 2, 2, 1, 2]),
    ('InstanceNorm1d with statistics', nn.InstanceNorm1d(3, track_running_stats=True), [2, 3, 5]),
    ('InstanceNorm2d with statistics', nn.InstanceNorm2d(3, affine=True, momentum=0.3, track_running_stats=True), [2, 3, 3, 2]),
    ('InstanceNorm3d with statistics', nn.InstanceNorm3d(2, track_running_stats=True), [2, 2, 2, 3, 2]),
):
    case(name, layer, shape, call=twice)
for mode in ('reflect', 'replicate', 'circular'):
    case(f'Conv1d, {mode}', nn.Conv1d(2, 3, 3, padding=2, stride=2, padding_mode=mode), [2, 2, 5])
    case(f'Conv2d, {mode}', nn.Conv2d(2, 4, (3, 2), padding=(1, 2), dilation=(2, 1), groups=2, padding_mode=mode), [1, 2, 5, 4])
    case(f'Conv3d, {mode}', nn.Conv3d(1, 2, 2, padding=(1, 0, 1), bias=False, padding_mode=mode), [1, 1, 3, 2, 3])
    case(f'Conv2d of the same size, {mode}', nn.Conv2d(1, 2, (2, 3), padding='same', dilation=(2, 1), padding_mode=mode), [1, 1, 4, 4])
case('BatchNorm3d', nn.BatchNorm3d(2), [2, 2, 2, 3, 2])
case('GroupNorm', nn.GroupNorm(2, 4), [2, 4, 3, 2])
case('InstanceNorm1d', nn.InstanceNorm1d(3), [2, 3, 5])
case('InstanceNorm2d', nn.InstanceNorm2d(3, affine=True), [2, 3, 3, 2])
case('InstanceNorm3d', nn.InstanceNorm3d(2), [2, 2, 2, 3, 2])
case('LocalResponseNorm', nn.LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2.0), [2, 5, 2, 2])
case('MaxPool1d', nn.MaxPool1d(3, 2, 1, return_indices=True), [2, 2, 8])
case('MaxPool2d', nn.MaxPool2d(3, 2, 1, dilation=2, return_indices=True, ceil_mode=True), [1, 2, 7, 6])
case('MaxPool3d', nn.MaxPool3d(2, 1, return_indices=True), [1, 2, 3, 3, 4])
case('AvgPool1d', nn.AvgPool1d(3, 2, 1, ceil_mode=True), [2, 2, 8])
case('AvgPool3d', nn.AvgPool3d(2, 2, 1, count_include_pad=False), [1, 2, 3, 4, 4])
case('LPPool1d', nn.LPPool1d(2, 3, 2), [2, 2, 7])
case('LPPool2d', nn.LPPool2d(2, 2), [1, 2, 4, 5])
case('MaxUnpool1d', nn.MaxUnpool1d(2), [1, 2, 2], ints([[0, 3], [1, 2]]))
case('MaxUnpool2d', nn.MaxUnpool2d(2), [1, 1, 2, 2], ints([[[0, 3], [13, 10]]]).reshape(1, 1, 2, 2))
case('MaxUnpool3d', nn.MaxUnpool3d(2), [1, 1, 1, 2, 1], ints([[[[3], [14]]]]).reshape(1, 1, 1, 2, 1), call=lambda m, x, i: m(x, i, output_size=(2, 4, 2)))
for rank, shape, size in ((1, [2, 2, 7], 3), (2, [1, 2, 5, 6], (2, None)), (3, [1, 2, 3, 4, 5], (2, 3, 2))):
    case(f'AdaptiveAvgPool{rank}d', getattr(nn, f'AdaptiveAvgPool{rank}d')(size), shape)
    case(f'AdaptiveMaxPool{rank}d', getattr(nn, f'AdaptiveMaxPool{rank}d')(size, return_indices=True), shape)
case('Upsample nearest', nn.Upsample(scale_factor=2), [1, 2, 3, 2])
case('Upsample linear', nn.Upsample(size=7, mode='linear'), [1, 2, 4])
case('Upsample bilinear', nn.Upsample(size=(5, 3), mode='bilinear', align_corners=True), [1, 2, 3, 4])
case('Upsample bicubic', nn.Upsample(scale_factor=1.5, mode='bicubic'), [1, 1, 4, 4])
case('Upsample trilinear', nn.Upsample(size=(3, 4, 5), mode='trilinear'), [1, 1, 2, 3, 3])
case('PixelShuffle', nn.PixelShuffle(2), [1, 8, 2, 3])
case('PixelUnshuffle', nn.PixelUnshuffle(2), [1, 2, 4, 6])
case('Unfold', nn.Unfold((2, 3), padding=1, stride=2), [1, 2, 4, 5])
case('Fold', nn.Fold((4, 5), (2, 3), stride=(2, 1)), [1, 12, 6])
case('ZeroPad2d', nn.ZeroPad2d((1, 2, 0, 1)), [1, 2, 3, 3])
case('Linear', nn.Linear(3, 4), [2, 5, 3])
case('Embedding', nn.Embedding(5, 3), ints([0, 2, 2], [4, 1, 0]))
case('Conv2d', nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2), [2, 4, 6, 5])
case('ConvTranspose2d', nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), [2, 4, 3, 4])
case('BatchNorm2d', nn.BatchNorm2d(3), [2, 3, 4, 2])
case('LayerNorm', nn.LayerNorm((3, 4)), [2, 3, 4])
case('AvgPool2d', nn.AvgPool2d(3, 2, 1), [2, 2, 7, 6])
case('GlobalAvgPool2d', nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), [2, 3, 4, 5])
case('Flatten', nn.Flatten(), [2, 3, 4])
case('Unflatten', nn.Unflatten(1, (3, 2)), [2, 6, 2])
case('Identity', nn.Identity(), [2, 3])
circular = lambda *widths: lambda m, x: nn.functional.pad(x, widths, mode='circular')
case('CircularPad1d', nn.Identity(), [1, 2, 4], call=circular(2, 1))
case('CircularPad2d', nn.Identity(), [1, 2, 3, 4], call=circular(2, 1, 0, 1))
case('CircularPad3d', nn.Identity(), [1, 1, 2, 3, 3], call=circular(1, 1, 0, 1, 1, 0))
case('ZeroPad1d', nn.ConstantPad1d((1, 2), 0), [1, 2, 3])
case('ZeroPad3d', nn.ConstantPad3d((1, 0, 0, 1, 2, 0), 0), [1, 1, 2, 2, 3])
case('ConstantPad1d', nn.ConstantPad1d((1, 2), 0.5), [1, 2, 3])
case('ConstantPad2d', nn.ConstantPad2d((1, -1, 0, 2), 0.5), [2, 3, 3])
case('ConstantPad3d', nn.ConstantPad3d((1, 0, 0, 1, 2, 0), 0.5), [1, 1, 2, 2, 3])
case('ReflectionPad1d', nn.ReflectionPad1d((2, 1)), [1, 2, 4])
case('ReflectionPad2d', nn.ReflectionPad2d((2, 1, 0, 1)), [1, 2, 3, 4])
case('ReflectionPad3d', nn.ReflectionPad3d((1, 1, 0, 1, 1, 0)), [1, 1, 2, 3, 3])
case('ReplicationPad1d', nn.ReplicationPad1d((2, 1)), [1, 2, 4])
case('ReplicationPad2d', nn.ReplicationPad2d((2, 1, 0, 1)), [1, 2, 3, 4])
case('ReplicationPad3d', nn.ReplicationPad3d(1), [1, 1, 2, 2, 3])
for name, layer in (
    ('CELU', nn.CELU(0.7)), ('GLU', nn.GLU(1)), ('HardSigmoid', nn.Hardsigmoid()), ('HardTanh', nn.Hardtanh(-0.3, 0.5)), ('LogSigmoid', nn.LogSigmoid()),
    ('Softmax2d', nn.Softmax2d()), ('Softmin', nn.Softmin(2)), ('Softplus', nn.Softplus(3)), ('Softsign', nn.Softsign()), ('PReLU', nn.PReLU()),
    ('PReLU of channels', nn.PReLU(4)), ('RReLU in evaluation', nn.RReLU(0.1, 0.5).eval()), ('HardShrink', nn.Hardshrink(0.3)), ('SoftShrink', nn.Softshrink(0.3)),
    ('TanhShrink', nn.Tanhshrink()), ('Threshold', nn.Threshold(0.15, -2)), ('ELU', nn.ELU(0.7)), ('GELU', nn.GELU()), ('GELU by tanh', nn.GELU('tanh')),
    ('HardSwish', nn.Hardswish()), ('LeakyReLU', nn.LeakyReLU(0.2)), ('LogSoftmax', nn.LogSoftmax(1)), ('Mish', nn.Mish()), ('ReLU', nn.ReLU()),
    ('ReLU6', nn.ReLU6()), ('SELU', nn.SELU()), ('Sigmoid', nn.Sigmoid()), ('SiLU', nn.SiLU()), ('Softmax', nn.Softmax(1)), ('Tanh', nn.Tanh()),
):
    case(name, layer, [2, 4, 3, 1])
for name, shape in (('Dropout', [2, 3]), ('Dropout1d', [2, 3, 4]), ('Dropout2d', [2, 3, 2, 2]), ('Dropout3d', [2, 2, 2, 1, 3]), ('AlphaDropout', [2, 3]), ('FeatureAlphaDropout', [2, 3, 2, 2])):
    case(f'{name} in evaluation', getattr(nn, name)().eval(), shape)
case('Bilinear', nn.Bilinear(3, 2, 4), [2, 5, 3], [2, 5, 2])
case('EmbeddingBag of means', nn.EmbeddingBag(5, 3), ints([0, 2, 2], [4, 1, 0]))
case('EmbeddingBag of sums', nn.EmbeddingBag(5, 3, mode='sum'), ints(0, 2, 2, 4), [4], call=lambda m, i, w: m(i, ints(0, 3), w))
case('EmbeddingBag of maxima', nn.EmbeddingBag(5, 3, mode='max'), ints(0, 2, 2, 4), call=lambda m, i: m(i, ints(0, 1)))


def shortened(m, *xs):
    """The table is changed by the call: it is a result too."""
    return m(*xs), m.weight.detach() * 1


for name, layer, given in (
    ('Embedding of short rows', nn.Embedding(5, 3, max_norm=0.6), ints([0, 2, 2], [4, 1, 0])),
    ('Embedding of short rows by another norm', nn.Embedding(5, 3, max_norm=0.7, norm_type=1.0, padding_idx=2), ints([2, 2], [4, 1])),
    ('Embedding by frequency', nn.Embedding(5, 3, scale_grad_by_freq=True), ints([0, 2, 2], [4, 2, 0])),
    ('EmbeddingBag of short rows', nn.EmbeddingBag(5, 3, max_norm=0.6, mode='max'), ints([0, 2, 2], [4, 1, 0])),
    # Every row twice: of other frequencies this version takes those of other rows on processors (`counts[indices_data[i]]`, where i counts rows).
    ('EmbeddingBag by frequency', nn.EmbeddingBag(5, 3, max_norm=0.6, scale_grad_by_freq=True, mode='sum'), ints([0, 2, 4], [2, 0, 4])),
):
    case(name, layer, given, call=shortened)
case('RNNCell', nn.RNNCell(3, 2), [4, 3], [4, 2])
case('RNNCell with relu', nn.RNNCell(3, 2, bias=False, nonlinearity='relu'), [4, 3])
case('LSTMCell', nn.LSTMCell(3, 2), [4, 3], [4, 2], [4, 2], call=lambda m, x, h, c: m(x, (h, c)))
case('GRUCell', nn.GRUCell(3, 2), [4, 3], [4, 2])


def lstm(m, x):
    y, (h, c) = m(x)
    return y, h, c


case('LSTM', nn.LSTM(3, 2, 2, batch_first=True), [2, 4, 3], call=lstm)
case('GRU', nn.GRU(3, 2, batch_first=True, bidirectional=True), [2, 4, 3])
case('RNN', nn.RNN(3, 2, batch_first=True), [2, 4, 3])
case('LSTM with a projection', nn.LSTM(2, 4, 2, batch_first=True, bidirectional=True, proj_size=3), [2, 3, 2], call=lstm)
case('LSTM with a projection from a state', nn.LSTM(2, 4, bias=False, batch_first=True, proj_size=2), [2, 6, 2], [1, 2, 2], [1, 2, 4], call=lambda m, x, h, c: m(x, (h, c))[0])
attention = lambda **o: nn.MultiheadAttention(4, 2, batch_first=True, **o)
case('weights of attention', attention(), [2, 3, 4], call=lambda m, x: m(x, x, x))
case('weights of each head', attention(bias=False), [2, 3, 4], [2, 5, 4], call=lambda m, q, k: m(q, k, k, average_attn_weights=False))
case('weights of causal attention', attention(), [2, 3, 4], call=lambda m, x: m(x, x, x, attn_mask=causal(3)))
case('attention to other widths', attention(kdim=3, vdim=5), [2, 3, 4], [2, 2, 3], [2, 2, 5], call=lambda m, q, k, v: m(q, k, v))
case('attention with a learned key', attention(add_bias_kv=True), [2, 3, 4], call=lambda m, x: m(x, x, x))
case('attention with a key of zeros', attention(add_zero_attn=True, bias=False), [2, 3, 4], [2, 5, 4], call=lambda m, q, k: m(q, k, k, average_attn_weights=False))
case('causal attention with added keys', attention(add_bias_kv=True, add_zero_attn=True), [2, 3, 4], call=lambda m, x: m(x, x, x, attn_mask=causal(3)))
case('attention of other widths with a learned key', attention(kdim=3, vdim=5, add_bias_kv=True), [2, 3, 4], [2, 2, 3], [2, 2, 5], call=lambda m, q, k, v: m(q, k, v))
masked = lambda m, x: m(x, x, x, attn_mask=torch.tensor([[0.5, -1, 2]]).expand(3, 3))
case('masked attention with added keys', attention(add_bias_kv=True, add_zero_attn=True), [2, 3, 4], call=masked)
layer = lambda kind, **o: kind(4, 2, dim_feedforward=6, dropout=0.0, batch_first=True, **o)
case('TransformerEncoderLayer', layer(nn.TransformerEncoderLayer), [2, 3, 4])
case('TransformerEncoder', nn.TransformerEncoder(layer(nn.TransformerEncoderLayer, norm_first=True), 2, nn.LayerNorm(4)), [2, 3, 4], call=lambda m, x: m(x, causal(3)))
case('TransformerDecoderLayer', layer(nn.TransformerDecoderLayer), [2, 3, 4], [2, 5, 4])
case('TransformerDecoderLayer, norms first', layer(nn.TransformerDecoderLayer, norm_first=True, activation='gelu'), [2, 3, 4], [2, 5, 4], call=lambda m, x, y: m(x, y, causal(3)))
case('TransformerDecoder', nn.TransformerDecoder(layer(nn.TransformerDecoderLayer), 2, nn.LayerNorm(4)), [2, 3, 4], [2, 2, 4])
case('Transformer', nn.Transformer(4, 2, 1, 1, 6, 0.0, batch_first=True), [2, 3, 4], [2, 2, 4])
case('weightNorm', weight_norm(nn.Linear(3, 2)), [4, 3])
case('weightNorm of axis 1', weight_norm(nn.ConvTranspose1d(2, 3, 2), dim=1), [1, 2, 4])
case('weightNorm of all', weight_norm(nn.Linear(3, 2, bias=False), dim=None), [4, 3])


def spectral(m, x):
    rows, columns = m.weight_u.numel(), m.weight_v.numel()
    m.weight_u.copy_(value(90, rows))
    m.weight_v.copy_(value(91, columns))
    return m(x)


case('spectralNorm', spectral_norm(nn.Linear(3, 2)), [4, 3], call=spectral)
case('spectralNorm of axis 1', spectral_norm(nn.ConvTranspose2d(2, 3, 2), n_power_iterations=2), [1, 2, 3, 3], call=spectral)
case('spectralNorm in evaluation', spectral_norm(nn.Linear(3, 2)).eval(), [4, 3], call=spectral)


def ctc(lengths, labels, **options):
    targets = ints([1, 2, 2], [3, 1, 0])
    return lambda m, x: nn.functional.ctc_loss(x.log_softmax(2), targets, ints(*lengths), ints(*labels), **options)


case('ctcLoss', nn.Identity(), [6, 2, 4], call=ctc((6, 4), (3, 2)))
case('ctcLoss of each', nn.Identity(), [6, 2, 4], call=ctc((5, 6), (1, 2), reduction='none'))
case('ctcLoss without labels', nn.Identity(), [6, 2, 4], call=ctc((5, 6), (0, 2), reduction='sum'))
case('ctcLoss of too many labels', nn.Identity(), [6, 2, 4], call=ctc((3, 6), (3, 1), zero_infinity=True))
header, data = {'__metadata__': names}, b''
for name, numbers in found.items():
    raw = numbers.numpy().tobytes()
    header[name] = {'dtype': 'F32', 'shape': list(numbers.shape), 'data_offsets': [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
with open(f'{sys.argv[1]}/layers.safetensors', 'wb') as file:
    file.write(struct.pack('<Q', len(text)) + text + data)
print(f'{len(found)} cases, {len(data)} bytes')
