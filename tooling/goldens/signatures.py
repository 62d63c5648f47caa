"""Writes the parameters of PyTorch's layers and optimizers, for tooling/from-pytorch.test.mjs: python3 signatures.py FILE.

Each name stands for two lists: what must be given, and what has a default. Classes whose signature is `*args` have theirs from the
documentation of PyTorch 1.13.
"""
import inspect
import json
import sys

import torch

written = {
    'RNN': [['input_size', 'hidden_size'], ['num_layers', 'nonlinearity', 'bias', 'batch_first', 'dropout', 'bidirectional']],
    'LSTM': [['input_size', 'hidden_size'], ['num_layers', 'bias', 'batch_first', 'dropout', 'bidirectional', 'proj_size']],
    'GRU': [['input_size', 'hidden_size'], ['num_layers', 'bias', 'batch_first', 'dropout', 'bidirectional']],
}
found = {}
for module in (torch.nn, torch.optim):
    for name, kind in sorted(vars(module).items()):
        if not inspect.isclass(kind) or name.startswith('_') or name.endswith('Loss'):
            continue
        if not issubclass(kind, torch.nn.Module if module is torch.nn else torch.optim.Optimizer):
            continue
        own = list(inspect.signature(kind.__init__).parameters.values())[1:]
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in own):
            continue
        found[name] = [[p.name for p in own if p.default is p.empty], [p.name for p in own if p.default is not p.empty]]
found.update(written)
with open(sys.argv[1], 'w') as file:
    lines = [f'  {json.dumps(name)}: {json.dumps(lists)}' for name, lists in sorted(found.items())]
    file.write('{\n' + ',\n'.join(lines) + '\n}\n')
