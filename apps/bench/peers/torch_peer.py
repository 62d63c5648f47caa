"""PyTorch as a peer: takes requests as JSON lines (apps/bench/src/peers/protocol.ts), answers with JSON behind a mark.

Argument: the number of threads.
"""

import json
import sys
import time

import torch
import torch.nn.functional as F

from torch_networks import bare, fill, inputs_of, make

LEARNING_RATE = {"sgd": 0.1, "adam": 1e-3}
SAMPLE_NS = 200_000
SLOW_NS = 1e9


class Unsupported(Exception):
    pass


def labels(batch):
    return [torch.tensor([(i * (s + 1) + 3 * s) % 10 for i in range(batch)]) for s in range(4)]


def probe_of(values):
    flat = values.reshape(-1)
    n = flat.shape[0]
    return [float(flat[j * (n - 1) // 7]) for j in range(8)]


def gemm(work):
    m, n, k = work["m"], work["n"], work["k"]
    a = fill(1, m * k, -1, 1).reshape(m, k)
    b = fill(2, k * n, -1, 1).reshape(k, n)
    return (lambda: a @ b), (lambda: probe_of(a @ b))


def conv(work):
    batch, channels, side, filters = work["batch"], work["channels"], work["side"], work["filters"]
    x = fill(1, batch * channels * side * side, -1, 1).reshape(batch, channels, side, side)
    kernel = fill(2, filters * channels * 9, -1, 1).reshape(filters, channels, 3, 3)
    step = lambda: F.conv2d(x, kernel, padding=1)
    return step, (lambda: probe_of(step()))


def elementwise(work):
    n, kind = work["n"], work["kind"]
    if kind == "sum":
        a = fill(3, n, 0, 1)
        return (lambda: a.sum()), (lambda: [float(a.sum())])
    a, b = fill(1, n, -1, 1), fill(2, n, -1, 1)
    if kind == "add":
        step = lambda: a + b
    else:
        step = lambda: torch.relu(a * b + a) * 0.5 - b
    return step, (lambda: probe_of(step()))


def layout(work):
    n, kind = work["n"], work["kind"]
    side = round(n**0.5)
    cube = round(n ** (1 / 3))
    shape = (cube, cube, cube) if kind == "sum-middle" else (side, side)
    a = (fill(3, n, 0, 1) if kind.startswith("sum") else fill(1, n, -1, 1)).reshape(shape)
    if kind == "add-row":
        b = fill(2, side, -1, 1)
    elif kind == "add-column":
        b = fill(2, side, -1, 1).reshape(side, 1)
    elif kind.startswith("add"):
        b = fill(2, n, -1, 1).reshape(shape)
    step = {
        "add-row": lambda: a + b,
        "add-column": lambda: a + b,
        "add-transposed": lambda: a + b.T,
        "add-strided": lambda: a[:, ::2] + b[:, ::2],
        "add-flipped": lambda: a + b.flip(0, 1),
        "sum-rows": lambda: a.sum(1),
        "max-rows": lambda: a.amax(1),
        "sum-columns": lambda: a.sum(0),
        "max-columns": lambda: a.amax(0),
        "sum-middle": lambda: a.sum(1),
        "softmax": lambda: F.softmax(a, -1),
        "layer-norm": lambda: F.layer_norm(a, (side,)),
        "gelu": lambda: F.gelu(a),
    }[kind]
    return step, (lambda: probe_of(step()))


def latency(work):
    a, b = fill(1, work["n"], -1, 1), fill(2, work["n"], -1, 1)
    if work["kind"] == "small-add":
        return (lambda: a + b), (lambda: probe_of(a + b))
    if work["kind"] == "round-trip":
        return (lambda: (a + b).numpy()), (lambda: probe_of(a + b))
    raise Unsupported("computes at once: there is nothing to record")


def network(work):
    if work["kind"] == "mlp":
        model = bare({"network": "mlp", "inputs": 784, "hidden": 128, "outputs": 10})
        weights = {0: (11, 784), 2: (12, 128)}
        x = fill(10, work["batch"] * 784, 0, 1).reshape(work["batch"], 784)
    else:
        model = bare({"network": "cnn"})
        weights = {0: (21, 9), 3: (22, 72), 7: (23, 784)}
        x = fill(20, work["batch"] * 784, 0, 1).reshape(work["batch"], 1, 28, 28)
    with torch.no_grad():
        for at, (seed, fan_in) in weights.items():
            layer = model[at]
            bound = fan_in**-0.5
            layer.weight.copy_(fill(seed, layer.weight.numel(), -bound, bound).reshape(layer.weight.shape))
            layer.bias.zero_()
    return model, x


def training(work):
    model, x = network(work)
    targets = labels(work["batch"])
    rate = LEARNING_RATE[work["optimizer"]]
    adam = work["optimizer"] == "adam"
    optimizer = (torch.optim.Adam if adam else torch.optim.SGD)(model.parameters(), lr=rate)
    at = 0

    def step():
        nonlocal at
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), targets[at % 4])
        at += 1
        loss.backward()
        optimizer.step()
        return loss

    return step, (lambda: [float(step()) for _ in range(4)])


def network_step(network):
    """A training step of a network of torch_networks.py with Adam, as a function of its inputs."""
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE["adam"])

    def step(inputs):
        optimizer.zero_grad(set_to_none=True)
        loss = network.loss(*inputs)
        loss.backward()
        optimizer.step()
        return loss

    return step


def repeated(work):
    """Training steps at one size."""
    draw = inputs_of(work["spec"], work["batch"], work["length"])
    sets = [draw(work["batch"], work["length"], at) for at in range(4)]
    train = network_step(make(work["spec"]))
    at = 0

    def step():
        nonlocal at
        at += 1
        return train(sets[(at - 1) % 4])

    return step, (lambda: [float(step()) for _ in range(2)])


def trial(work):
    """Uses at one size after the other: the loop of apps/bench/src/work/trial.ts."""
    most, spec = max(work["sizes"]), work["spec"]
    of_batch, training = work["varies"] == "batch", work["use"] == "train"
    draw = inputs_of(spec, most if of_batch else work["batch"], work["length"] if of_batch else most)
    torch.set_grad_enabled(training)
    repeats = set(work["again"])
    times, again, probe = [], [], []
    start = time.perf_counter_ns()
    network = make(spec)
    train = network_step(network) if training else None
    if not training:
        network.eval()
    step = network.decoder() if work["use"] == "generate" else None
    made = time.perf_counter_ns() - start

    def use(at, size):
        begin = time.perf_counter_ns()
        inputs = draw(size, work["length"], at) if of_batch else draw(work["batch"], size, at)
        if step is not None:
            value = float(step(inputs[0][0, -1:], size - 1))
        else:
            value = float(train(inputs) if training else network.infer(*inputs))
        return value, time.perf_counter_ns() - begin

    for at, size in enumerate(work["sizes"]):
        if (time.perf_counter_ns() - start) / 1e6 > work["limitMs"]:
            break
        value, ns = use(at, size)
        times.append(ns)
        if len(probe) < 4:
            probe.append(value)
        if at in repeats:
            again.append(use(at, size)[1])
    return {"make": made, "times": times, "again": again, "probe": probe}


def operand(about, at):
    shape = about["shape"]
    size = 1
    for n in shape:
        size *= n
    values = fill(at + 1, size, about["low"], about["high"])
    if about["sorted"]:
        values = values.sort()[0]
    if about["kind"] != "float":
        values = values.floor().long().clamp(max=about["high"] - 1)
    return (values.bool() if about["kind"] == "bool" else values).reshape(shape)


def operation(work):
    """A row of the suite `operations`: an expression of torch, F and the operands, and its gradients where they are asked for."""
    operands = [operand(about, at) for at, about in enumerate(work["operands"])]
    value = eval(f"lambda {', '.join('abcd'[: len(operands)])}: {work['torch']}", {"torch": torch, "F": F})
    first = lambda result: result[0] if isinstance(result, (list, tuple)) else result
    if work["backward"]:
        followed = [t.requires_grad_() for t, about in zip(operands, work["operands"]) if about["gradient"]]
        y = first(value(*operands))
        weights = fill(9, y.numel(), -1, 1).reshape(y.shape)
        step = lambda: torch.autograd.grad(first(value(*operands)), followed, weights, allow_unused=True)
    else:
        step = lambda: value(*operands)

    def probe():
        result = first(step())
        if work["random"]:
            return [result.numel()]
        return probe_of(result) if result.numel() != 1 else [float(result)]

    return step, probe


MAKERS = {
    "operation": operation,
    "gemm": gemm,
    "conv": conv,
    "add": elementwise,
    "chain": elementwise,
    "sum": elementwise,
    "small-add": latency,
    "round-trip": latency,
    "record": latency,
    "plan-hit": latency,
    "mlp": training,
    "cnn": training,
    "network": repeated,
}


def sample(step, count):
    start = time.perf_counter_ns()
    for _ in range(count):
        step()
    return (time.perf_counter_ns() - start) / count


def warm_up(step, warm_ms):
    op_ns = sample(step, 1)
    if op_ns > SLOW_NS:
        return 1, op_ns
    count = 1
    end = time.perf_counter() + warm_ms / 1e3
    while True:
        op_ns = min(op_ns, sample(step, count))
        count = max(1, min(100_000, round(SAMPLE_NS / op_ns)))
        if time.perf_counter() >= end:
            return count, op_ns


def say(reply):
    sys.stdout.write("@bench " + json.dumps(reply) + "\n")
    sys.stdout.flush()


def blas():
    """Which library multiplies matrices: Debian's torch takes the one that the system offers, the slow reference too."""
    torch.ones(64, 64) @ torch.ones(64, 64)
    try:
        with open("/proc/self/maps") as maps:
            names = {line.rsplit("/", 1)[-1].strip() for line in maps}
    except OSError:
        return "unknown"
    fast = sorted(name for name in names if any(word in name for word in ("openblas", "mkl", "blis", "atlas")))
    return ", ".join(fast) or "reference, slow (Debian: apt-get install libopenblas0-pthread)"


def main():
    torch.set_num_threads(int(sys.argv[1]))
    say({"version": torch.__version__, "note": "BLAS: " + blas()})
    step, count = None, 1
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] == "prepare":
                work = request["work"]
                training_work = work["kind"] in ("mlp", "cnn", "network") or work.get("backward", False)
                torch.set_grad_enabled(training_work)
                step, probe = MAKERS.get(work["kind"], layout)(work)
                probed = probe()
                count, op_ns = warm_up(step, request["warmMs"])
                say({"probe": probed, "count": count, "opNs": op_ns})
            elif request["op"] == "measure":
                samples = []
                end = time.perf_counter() + request["budgetMs"] / 1e3
                while True:
                    samples.append(sample(step, count))
                    if time.perf_counter() >= end or len(samples) >= request["maxSamples"]:
                        break
                say({"samples": samples})
            elif request["op"] == "trial":
                say(trial(request["work"]))
            elif request["op"] == "finish":
                step = probe = None
                say({})
            else:
                return
        except Unsupported as reason:
            say({"unsupported": str(reason)})
        except Exception as error:  # the harness reports it
            say({"error": f"{type(error).__name__}: {error}"})


main()
