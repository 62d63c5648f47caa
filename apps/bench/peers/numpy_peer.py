"""numpy as a peer, for matrix products: takes requests as JSON lines (apps/bench/src/peers/protocol.ts), answers with JSON behind a mark."""

import json
import sys
import time

import numpy as np

SAMPLE_NS = 200_000


def fill(seed, n, low, high):
    """The same sequence as fill() in apps/bench/src/work/inputs.ts."""
    u = np.arange(n, dtype=np.uint32) + np.uint32(seed * 0x9E3779B1 & 0xFFFFFFFF)
    u ^= u >> np.uint32(16)
    u *= np.uint32(0x7FEB352D)
    u ^= u >> np.uint32(15)
    u *= np.uint32(0x846CA68B)
    u ^= u >> np.uint32(16)
    unit = (u >> np.uint32(8)).astype(np.float64) * 2.0**-24
    return (low + (high - low) * unit).astype(np.float32)


def gemm(work):
    m, n, k = work["m"], work["n"], work["k"]
    a = fill(1, m * k, -1, 1).reshape(m, k)
    b = fill(2, k * n, -1, 1).reshape(k, n)
    return lambda: a @ b


def sample(step, count):
    start = time.perf_counter_ns()
    for _ in range(count):
        step()
    return (time.perf_counter_ns() - start) / count


def warm_up(step, warm_ms):
    count, end = 1, time.perf_counter() + warm_ms / 1e3
    while True:
        op_ns = sample(step, count)
        count = max(1, min(100_000, round(SAMPLE_NS / op_ns)))
        if time.perf_counter() >= end:
            return count, op_ns


def say(reply):
    sys.stdout.write("@bench " + json.dumps(reply) + "\n")
    sys.stdout.flush()


def blas():
    with open("/proc/self/maps") as maps:
        names = {line.rsplit("/", 1)[-1].strip() for line in maps}
    return ", ".join(sorted(name for name in names if "blas" in name or "mkl" in name))


def main():
    say({"version": np.__version__, "note": "BLAS: " + blas()})
    step, count = None, 1
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "prepare":
            work = request["work"]
            if work["kind"] != "gemm":
                say({"unsupported": "does matrix products only"})
                continue
            step = gemm(work)
            flat = step().reshape(-1)
            probe = [float(flat[j * (flat.shape[0] - 1) // 7]) for j in range(8)]
            count, op_ns = warm_up(step, request["warmMs"])
            say({"probe": probe, "count": count, "opNs": op_ns})
        elif request["op"] == "measure":
            samples, end = [], time.perf_counter() + request["budgetMs"] / 1e3
            while True:
                samples.append(sample(step, count))
                if time.perf_counter() >= end or len(samples) >= request["maxSamples"]:
                    break
            say({"samples": samples})
        elif request["op"] == "finish":
            step = None
            say({})
        else:
            return


main()
