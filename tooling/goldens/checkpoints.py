"""Writes checkpoints of PyTorch with inputs and outputs, for packages/nn/src/module/torch.test.ts: python3 checkpoints.py FOLDER.

One file holds three networks: their state dictionaries under `cnn.`, `lstm.` and `encoder.`, as `safetensors.torch` writes
them, and what they make of `x.NAME` in `y.NAME`.
"""
import json
import struct
import sys

import torch
from torch import nn

torch.manual_seed(7)
torch.set_num_threads(1)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4 * 5 * 5, 3)

    def forward(self, x):
        return self.head(torch.flatten(self.features(x), 1))


cnn, lstm = Cnn(), nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True)
encoder = nn.TransformerEncoderLayer(8, 2, dim_feedforward=12, dropout=0.0, activation="gelu", batch_first=True)
for _ in range(3):
    cnn(torch.randn(6, 2, 5, 5) * 2 + 1)
inputs = {"cnn": torch.randn(2, 2, 5, 5), "lstm": torch.randn(2, 5, 3), "encoder": torch.randn(2, 4, 8)}
found = {}
for name, network in (("cnn", cnn), ("lstm", lstm), ("encoder", encoder)):
    for part, value in network.state_dict().items():
        found[f"{name}.{part}"] = value
    network.eval()
    # With gradients: without them 1.13 takes another path through the encoder.
    y = network(inputs[name])
    found[f"x.{name}"] = inputs[name]
    found[f"y.{name}"] = (y[0] if isinstance(y, tuple) else y).detach()

names = {torch.float32: "F32", torch.int64: "I64"}
header, data = {"__metadata__": {"format": "pt"}}, b""
for name, value in found.items():
    raw = value.contiguous().numpy().tobytes()
    header[name] = {"dtype": names[value.dtype], "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
folder = sys.argv[1]
with open(f"{folder}/torch.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
