"""Prints what `torch.autocast('cpu', torch.bfloat16)` makes of two linear layers, a loss and a convolution: values and gradients by name.

The numbers are in packages/nn/src/precision/torch-autocast.test.ts. PyTorch 1.13.1.
"""

import torch


def values(k, *shape):
    """Numbers by the formula of the test."""
    count = 1
    for n in shape:
        count *= n
    return torch.tensor([((37 * j + 11 * k) % 101 - 50) / 60 for j in range(count)]).reshape(shape)


def shown(t):
    return [float("%.7g" % a) for a in t.detach().float().flatten().tolist()]


def main():
    first, second, conv = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3), torch.nn.Conv2d(1, 2, 3, padding=1)
    with torch.no_grad():
        for k, p in enumerate([first.weight, first.bias, second.weight, second.bias], 1):
            p.copy_(values(k, *p.shape))
        conv.weight.copy_(values(7, 2, 1, 3, 3))
        conv.bias.copy_(values(8, 2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = second(torch.relu(first(values(5, 4, 6))))
        loss = torch.nn.functional.mse_loss(out, values(6, 4, 3))
        image = conv(values(9, 1, 1, 4, 4))
    loss.backward()
    results = {
        "loss": loss,
        "out": out,
        "image": image,
        "weight1": first.weight.grad,
        "bias1": first.bias.grad,
        "weight2": second.weight.grad,
        "bias2": second.bias.grad,
    }
    for name, t in results.items():
        print(name, str(t.dtype), shown(t))


if __name__ == "__main__":
    main()
