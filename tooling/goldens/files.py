"""Files of PyTorch and NumPy with what is in them, for packages/data/src/exchange/exchange.test.ts.

    /usr/bin/python3 tooling/goldens/files.py packages/data/src/fixtures

writes files.json; the committed file was made with PyTorch 1.13 and NumPy 1.24.2 (Debian 12).
"""
import base64
import io
import json
import os
import sys

import numpy as np
import torch
from torch import nn

torch.manual_seed(3)
rng = np.random.default_rng(3)
names = {torch.float64: "float64", torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.int64: "int64", torch.int32: "int32", torch.int16: "int16", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "bool"}


def text(data):
    return base64.b64encode(data).decode()


def tensor(t):
    t = t.detach().contiguous()
    data = t.view(torch.int16).numpy() if t.dtype == torch.bfloat16 else t.numpy()
    return {"dtype": names[t.dtype], "shape": list(t.shape), "data": text(data.tobytes())}


def array(a):
    return {"dtype": a.dtype.name, "shape": list(a.shape), "data": text(np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes())}


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    return text(file.getvalue())


def forms(value):
    """What torch.save makes: an archive, pickles as before 1.6, and a later protocol."""
    return {"zip": saved(value), "pickles": saved(value, _use_new_zipfile_serialization=False), "protocol4": saved(value, pickle_protocol=4)}


def flat(value, name=""):
    found = {}
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        full = f"{name}.{key}" if name else str(key)
        if isinstance(part, torch.Tensor):
            found[full] = part
        elif isinstance(part, (dict, list, tuple)):
            found.update(flat(part, full))
    return found


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3))
        self.embed = nn.Embedding(4, 2)
        self.lstm = nn.LSTM(2, 2, bidirectional=True)
        self.attention = nn.MultiheadAttention(4, 2)
        self.norm = nn.LayerNorm(4)
        self.mix = nn.Bilinear(2, 2, 2)
        self.tied = nn.Linear(2, 4, bias=False)
        self.tied.weight = self.embed.weight


class Hostile:
    def __reduce__(self):
        return os.system, ("echo harmed",)


def torch_files():
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    sum(p.sum() for p in net.parameters()).backward()
    optimizer.step()
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    kinds = {name: torch.tensor([0, 1, 2, 100], dtype=dtype) for dtype, name in names.items()}
    kinds["float16"] = torch.tensor([0.1, -2.5, 65504.0, float("inf")], dtype=torch.float16)
    kinds["bfloat16"] = torch.tensor([0.1, -2.5, 3e38, float("nan")], dtype=torch.bfloat16)
    kinds["int64"] = torch.tensor([-(2**63), 2**62, -1])
    views = {"turned": base.t(), "part": base[1:3, ::2], "row": base[2], "stretched": base[:, :1].expand(4, 5), "same": base, "deep": base.reshape(2, 2, 2, 3).permute(3, 1, 0, 2), "one": torch.tensor(1.5), "none": torch.zeros(0, 3), "none of some": base[4:]}
    checkpoint = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "best": 0.25, "name": "net é", "done": False, "more": None, "large": 2**70, "sizes": (1, [2, 3]), "shape": torch.Size([2, 3]), "device": torch.device("cpu"), "dtype": torch.float32}
    parameter = {"w": nn.Parameter(torch.ones(2, 2))}
    groups = {"state": net.state_dict(), "dtypes": kinds, "views": views, "checkpoint": checkpoint, "parameter": parameter, "list": [base, {"x": base[0]}]}
    files = [{"name": f"{name} {form}", "file": file, "tensors": {key: tensor(t) for key, t in flat(value).items()}} for name, value in groups.items() for form, file in forms(value).items()]
    refused = {"a whole model": nn.Linear(1, 1), "a call": Hostile(), "complex numbers": {"w": torch.ones(2, dtype=torch.complex64)}, "a number of NumPy": {"loss": np.float64(0.5)}, "sparse": {"w": torch.eye(2).to_sparse()}, "quantized": {"w": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)}}
    return files, {name: {form: saved(value, **options) for form, options in (("zip", {}), ("pickles", {"_use_new_zipfile_serialization": False}))} for name, value in refused.items()}


def npy(a, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, a, **options)
    return text(file.getvalue())


def numpy_files():
    arrays = [np.array([0, 1, 2, 100]).astype(kind) for kind in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")]
    arrays += [np.arange(6.0).reshape(2, 3).astype(">f4"), np.arange(6).reshape(2, 3).astype(">i8"), np.asfortranarray(np.arange(24, dtype="i2").reshape(2, 3, 4)), np.float32(2.5).reshape(()), np.zeros((0, 3), "f4"), np.arange(12, dtype="f8").reshape(3, 4)[:, ::2]]
    files = [{"file": npy(a), "array": array(a)} for a in arrays]
    files += [{"file": npy(arrays[1], version=version), "array": array(arrays[1])} for version in ((2, 0), (3, 0))]
    many = {"x": arrays[0], "deep/name": arrays[-1], "empty": np.zeros((0, 2), "i4"), "packed": np.zeros((50, 50), "f4")}
    archives = []
    for write in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        write(file, **many)
        archives.append(text(file.getvalue()))
    refused = [npy(np.array(["a", "b"])), npy(np.array([{}, 1], dtype=object), allow_pickle=True), npy(np.zeros(2, "c8")), npy(np.zeros(2, [("x", "f4")])), npy(np.zeros(2, "M8[s]"))]
    return {"files": files, "archives": archives, "arrays": {name: array(a) for name, a in many.items()}, "refused": refused}


files, refused = torch_files()
with open(os.path.join(sys.argv[1], "files.json"), "w") as out:
    json.dump({"torch": files, "torchRefused": refused, "numpy": numpy_files()}, out, separators=(",", ":"))
    out.write("\n")
