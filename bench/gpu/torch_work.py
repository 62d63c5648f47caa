"""PyTorch's part: measures cases on the card and prints a line of JSON for each, as it goes. Requests are lines of JSON with `cases` on its input;
without one it says only what is there. Needs CUDA in PyTorch."""

import json
import os
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../apps/bench/peers"))
from torch_networks import inputs_of, make  # noqa: E402

device = torch.device(os.environ.get("TORCH_DEVICE", "cuda"))
# float32 means float32, but in cases that ask for TF32.
torch.backends.cudnn.allow_tf32 = False


def say(line):
    print(json.dumps(line), flush=True)


def settle():
    if device.type == "cuda":
        torch.cuda.synchronize()


def drawn(*shape, dtype="float32"):
    return torch.rand(*shape, device=device).to(getattr(torch, dtype))


def trained(one):
    spec = one["spec"]
    network = make(spec).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    draw = inputs_of(spec, one["batch"], one["length"])
    sets = {}

    def step(length=one["length"]):
        if length not in sets:
            sets[length] = [x.to(device) for x in draw(one["batch"], length, 0)]
        optimizer.zero_grad()
        loss = network.loss(*sets[length])
        loss.backward()
        optimizer.step()
        return loss

    return step


def adam(one):
    p = torch.nn.Parameter(drawn(one["n"]))
    optimizer = torch.optim.Adam([p], lr=1e-3)
    p.grad = drawn(one["n"])
    return optimizer.step


def chain(one):
    a, b = drawn(one["n"]), drawn(one["n"])
    return lambda: torch.clamp(a * b + a, min=0) * 0.5 - b


def layer_norm(one):
    a = drawn(one["rows"], one["columns"])
    return lambda: F.layer_norm(a, a.shape[1:])


def gemm(one):
    shape = [one["batch"]] if one["batch"] > 1 else []
    a = drawn(*shape, one["m"], one["k"], dtype=one["dtype"])
    b = drawn(*shape, one["k"], one["n"], dtype=one["dtype"])
    return lambda: a @ b


def convolution(one):
    x = drawn(one["batch"], one["c"], one["side"], one["side"])
    w = drawn(one["o"], one["c"], one["kernel"], one["kernel"])
    return x, w, lambda: F.conv2d(x, w, stride=one["stride"], padding=(one["kernel"] - 1) // 2)


def conv_backward(one):
    x, w, run = convolution(one)
    x.requires_grad_(), w.requires_grad_()
    y = run()
    slopes = torch.rand_like(y)
    return lambda: torch.autograd.grad(y, (x, w), slopes, retain_graph=True)


def attention(one):
    q, k, v = (drawn(one["batch"], one["heads"], one["places"], one["width"], dtype=one["dtype"]) for _ in range(3))
    if hasattr(F, "scaled_dot_product_attention"):
        return (q, k, v), lambda: F.scaled_dot_product_attention(q, k, v, is_causal=one["causal"])
    # PyTorch before 2.0.
    places = one["places"]
    hidden = torch.full((places, places), float("-inf") if one["causal"] else 0, dtype=q.dtype, device=device).triu(1)
    return (q, k, v), lambda: (q @ k.transpose(-1, -2) / one["width"] ** 0.5 + hidden).softmax(-1) @ v


def attention_backward(one):
    operands, run = attention(one)
    for x in operands:
        x.requires_grad_()
    slopes = torch.rand_like(operands[0])
    return lambda: torch.autograd.grad(run(), operands, slopes)


def with_one(f, *shape):
    a = drawn(*shape)
    return lambda: f(a)


def with_two(f, *shape):
    a, b = drawn(*shape), drawn(*shape)
    return lambda: f(a, b)


def replayed(one):
    a, b = drawn(1024), drawn(1024)

    def run():
        x = a
        for _ in range(one["length"]):
            x = x + b
        return x

    return run


def upload(one):
    data = torch.ones(one["n"])
    return lambda: data.to(device)


kinds = {
    "copy": lambda one: with_one(torch.clone, one["n"]),
    "upload": upload,
    "download": lambda one: with_one(lambda a: a.cpu(), one["n"]),
    "add": lambda one: with_two(torch.add, one["n"]),
    "chain": chain,
    "exp": lambda one: with_one(torch.exp, one["n"]),
    "sum": lambda one: with_one(torch.sum, one["n"]),
    "sumRows": lambda one: with_one(lambda a: a.sum(1), one["rows"], one["columns"]),
    "sumColumns": lambda one: with_one(lambda a: a.sum(0), one["rows"], one["columns"]),
    "softmax": lambda one: with_one(lambda a: a.softmax(1), one["rows"], one["columns"]),
    "layerNorm": layer_norm,
    "gemm": gemm,
    "conv": lambda one: convolution(one)[2],
    "convBackward": conv_backward,
    "attention": lambda one: attention(one)[1],
    "attentionBackward": attention_backward,
    "adam": adam,
    "network": trained,
    "small": lambda one: with_two(torch.add, 1),
    "replayed": replayed,
}


def measure(run, brief, share=1):
    def sample(count):
        start = time.perf_counter()
        for _ in range(count):
            run()
        settle()
        return (time.perf_counter() - start) / count

    sample(1)
    sample(2)
    count = max(1, min(1000, int((0.001 if brief else 0.1) / sample(1)) + 1))
    samples = []
    end = time.perf_counter() + 2.5
    while len(samples) < (2 if brief else 7) and (len(samples) < 2 or time.perf_counter() < end):
        samples.append(sample(count) / share)
    samples.sort()
    return {"median": samples[len(samples) // 2], "best": samples[0]}


def batches(one):
    conv = one["layer"] == "conv"
    shape = [one["o"], one["c"], one["kernel"], one["kernel"]] if conv else [one["c"], one["o"]]
    w = torch.rand(shape, device=device, requires_grad=True)
    made = {}

    def drawn(batch):
        area = [one["side"], one["side"]] if conv else []
        return [torch.rand([batch, n, *area], device=device) for n in (one["c"], one["o"])]

    def step(batch):
        x, slopes = made[batch]
        y = torch.nn.functional.conv2d(x, w, padding=one["kernel"] // 2) if conv else x @ w
        dx, dw = torch.autograd.grad(y, [x, w], slopes)
        return y.detach().sum() + dx.sum() + dw.sum()

    for batch in one["known"] + one["lengths"]:
        made[batch] = drawn(batch)
        made[batch][0].requires_grad_()
    for batch in one["known"]:
        step(batch).item()
    return step


def uses(one):
    step = batches(one) if one["kind"] == "batches" else trained(one)
    times = []
    for length in one["lengths"]:
        start = time.perf_counter()
        step(length).item()
        times.append(time.perf_counter() - start)
    times.sort()
    return {"median": times[len(times) // 2], "best": times[0]}


def work(request):
    for one in request["cases"]:
        say({"begins": one["name"]})
        torch.backends.cuda.matmul.allow_tf32 = one.get("tf32", False)
        try:
            if "lengths" in one:
                found = uses(one)
            else:
                found = measure(kinds[one["kind"]](one), request["brief"], one["length"] if one["kind"] == "replayed" else 1)
            say({"name": one["name"], **found})
        except Exception as error:  # A case that fails costs itself only.
            say({"name": one["name"], "failed": str(error).split("\n")[0]})
        if device.type == "cuda":
            torch.cuda.empty_cache()


if device.type == "cuda" and not torch.cuda.is_available():
    say({"missing": "PyTorch has no CUDA here"})
    sys.exit(0)
say({"device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu", "version": torch.__version__})
for line in sys.stdin:
    work(json.loads(line))
