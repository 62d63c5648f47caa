"""Networks of the benchmarks in PyTorch: the same as apps/bench/src/networks, with parameters and inputs by the rules of src/work/networks.ts."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def fill(seed, n, low, high):
    """The same sequence as fill() in apps/bench/src/work/inputs.ts."""
    u = np.arange(n, dtype=np.uint32) + np.uint32(seed * 0x9E3779B1 & 0xFFFFFFFF)
    u ^= u >> np.uint32(16)
    u *= np.uint32(0x7FEB352D)
    u ^= u >> np.uint32(15)
    u *= np.uint32(0x846CA68B)
    u ^= u >> np.uint32(16)
    unit = (u >> np.uint32(8)).astype(np.float64) * 2.0**-24
    return torch.from_numpy((low + (high - low) * unit).astype(np.float32))


def parameter_of(name, shape):
    size = int(np.prod(shape))
    if len(shape) < 2:
        return torch.full(shape, 1.0 if name.endswith("weight") else 0.0)
    code = 0
    for letter in name:
        code = (code * 31 + ord(letter)) & 0xFFFFFFFF
    bound = (shape[0] / size) ** 0.5
    return fill(1000 + code % 65521, size, -bound, bound).reshape(shape)


def classes(batch, step, count=10):
    s = step % 4
    return torch.tensor([(i * (s + 1) + 3 * s) % 10 % count for i in range(batch)])


def inputs_of(spec, most_batch, most_length):
    """What a network is given at a step: a function of batch, length and step."""
    kind = spec["network"]

    def numbers(seed, low, *shape):
        size = int(np.prod(shape)) if shape else 1
        drawn = fill(seed, most_batch * size, low, 1)
        return lambda batch: drawn[: batch * size].reshape(batch, *shape).clone()

    if kind == "mlp":
        x = numbers(10, 0, spec["inputs"])
        return lambda b, _, step: (x(b), classes(b, step))
    if kind == "cnn":
        x = numbers(20, 0, 1, 28, 28)
        return lambda b, _, step: (x(b), classes(b, step))
    if kind == "resnet18":
        x = numbers(30, -1, 3, spec["side"], spec["side"])
        return lambda b, _, step: (x(b), classes(b, step))
    if kind == "gpt":
        tokens = fill(40, most_batch * most_length + 1, 0, spec["vocabulary"]).long()
        return lambda b, n, _: (tokens[: b * n].reshape(b, n), tokens[1 : b * n + 1].reshape(b, n))
    if kind == "lstm":
        width = spec["inputs"]
        drawn = fill(50, most_batch * most_length * width, -1, 1)
        return lambda b, n, step: (
            drawn[: b * n * width].reshape(b, n, width).clone(),
            classes(b, step, spec["outputs"]),
        )
    if kind == "vae":
        x, noise = numbers(60, 0, 784), numbers(61, -1, spec["latent"])
        return lambda b, *_: (x(b), noise(b))
    if kind == "unet":
        side = spec["side"]
        x, mask = numbers(70, -1, 1, side, side), numbers(71, 0, 1, side, side)
        return lambda b, *_: (x(b), (mask(b) >= 0.5).float())
    if kind == "pinn":
        x, t = numbers(80, -1, 1), numbers(81, 0, 1)
        return lambda b, *_: (x(b), t(b))
    if kind == "actor-critic":
        seen, gains = numbers(90, -1, 4), numbers(91, 0)
        return lambda b, _, step: (seen(b), classes(b, step, 2), gains(b))
    raise ValueError(f"no network {kind}")


class Network(nn.Module):
    """With a loss of inputs, and what inference gives."""

    def loss(self, x, y):
        return F.cross_entropy(self(x), y)

    def infer(self, x, *_):
        return self(x).max()


class Row(nn.Sequential, Network):
    """Layers in a row that end in classes."""


class ActorCritic(Network):
    def __init__(self, hidden):
        super().__init__()
        self.first = nn.Linear(4, hidden)
        self.actor = nn.Linear(hidden, 2)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, x):
        h = F.relu(self.first(x))
        return self.actor(h), self.critic(h)

    def loss(self, seen, done, gains):
        logits, value = self(seen)
        chosen = F.log_softmax(logits, 1).gather(1, done.unsqueeze(1))
        advantage = gains.unsqueeze(1) - value
        return 0.5 * advantage.square().mean() - (chosen * advantage.detach()).mean()

    def infer(self, x, *_):
        return self(x)[0].max()


class Vae(Network):
    def __init__(self, hidden, latent):
        super().__init__()
        self.down = nn.Linear(784, hidden)
        self.middle = nn.Linear(hidden, latent)
        self.spread = nn.Linear(hidden, latent)
        self.up = nn.Linear(latent, hidden)
        self.out = nn.Linear(hidden, 784)

    def forward(self, x, noise):
        h = F.relu(self.down(x))
        middle, spread = self.middle(h), self.spread(h)
        z = middle + noise * (spread * 0.5).exp()
        return self.out(F.relu(self.up(z))), middle, spread

    def loss(self, x, noise):
        logits, middle, spread = self(x, noise)
        apart = middle.square() + spread.exp() - (spread + 1)
        return F.binary_cross_entropy_with_logits(logits, x) + 0.5 * apart.mean()


class Pinn(Row):
    def u(self, x, t):
        return self(torch.cat([x, t], 1))

    def loss(self, x, t):
        x, t = x.requires_grad_(), t.requires_grad_()
        value = self.u(x, t)
        ux, ut = torch.autograd.grad(value.sum(), (x, t), create_graph=True)
        uxx = torch.autograd.grad(ux.sum(), x, create_graph=True)[0]
        inside = ut + value * ux - 0.01 * uxx
        with torch.no_grad():
            known, zero = torch.sin(np.pi * x), torch.zeros_like(t)
        start = self.u(x.detach(), zero) + known
        return inside.square().mean() + start.square().mean()


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        same = stride == 1 and inputs == outputs
        self.shortcut = (
            nn.Sequential()
            if same
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet18(width):
    stages = []
    for stage in range(4):
        outputs = width << stage
        stages.append(Residual(width if stage == 0 else outputs // 2, outputs, 1 if stage == 0 else 2))
        stages.append(Residual(outputs, outputs, 1))
    first = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    return Row(*first, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10))


class UNet(Network):
    def __init__(self, width):
        super().__init__()

        def pair(inputs, outputs):
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(outputs, outputs, 3, padding=1),
                nn.ReLU(),
            )

        self.down1 = pair(1, width)
        self.down2 = pair(width, 2 * width)
        self.middle = pair(2 * width, 4 * width)
        self.grow2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.up2 = pair(4 * width, 2 * width)
        self.grow1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.up1 = pair(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        middle = self.middle(F.max_pool2d(second, 2))
        half = self.up2(torch.cat([self.grow2(middle), second], 1))
        return self.out(self.up1(torch.cat([self.grow1(half), first], 1)))

    def loss(self, x, mask):
        return F.binary_cross_entropy_with_logits(self(x), mask)


class Gpt(Network):
    def __init__(self, layers, width, heads, vocabulary, places):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(places, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids) + self.places.weight[:n]
        mask = torch.full((n, n), float("-inf")).triu(1)
        for block in self.blocks:
            x = block(x, src_mask=mask)
        return self.last(x)

    def loss(self, ids, following):
        logits = self.head(self(ids))
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), following.reshape(-1))

    def infer(self, ids, *_):
        return self.head(self(ids)[:, -1]).max()

    def decoder(self):
        """Takes tokens one by one, keys and values of those before in memory taken once."""
        places, width = self.places.weight.shape
        heads = self.blocks[0].self_attn.num_heads
        size = width // heads
        kept = [torch.zeros(2, heads, places, size) for _ in self.blocks]

        def step(token, at):
            x = self.tokens(token) + self.places.weight[at : at + 1]
            for block, (keys, values) in zip(self.blocks, kept):
                attention = block.self_attn
                seen = F.linear(block.norm1(x), attention.in_proj_weight, attention.in_proj_bias)
                q, keys[:, at], values[:, at] = seen.reshape(3, heads, size)
                weights = torch.bmm(keys[:, : at + 1], q.unsqueeze(2)).squeeze(2) / size**0.5
                mixed = torch.bmm(weights.softmax(1).unsqueeze(1), values[:, : at + 1])
                x = x + attention.out_proj(mixed.reshape(1, width))
                x = x + block.linear2(F.gelu(block.linear1(block.norm2(x))))
            return self.head(self.last(x)).max()

        return step


class Lstm(Network):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def bare(spec):
    kind = spec["network"]
    rest = {name: value for name, value in spec.items() if name != "network"}
    if kind == "mlp":
        return Row(
            nn.Linear(spec["inputs"], spec["hidden"]), nn.ReLU(), nn.Linear(spec["hidden"], spec["outputs"])
        )
    if kind == "cnn":
        first = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        return Row(*first, *second, nn.Flatten(), nn.Linear(784, 10))
    if kind == "resnet18":
        return resnet18(spec["width"])
    if kind == "pinn":
        width = spec["width"]
        layers = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(spec["layers"] - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        return Pinn(*layers, nn.Linear(width, 1))
    if kind == "unet":
        return UNet(spec["width"])
    return {"gpt": Gpt, "lstm": Lstm, "vae": Vae, "actor-critic": ActorCritic}[kind](**rest)


def make(spec):
    network = bare(spec)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(parameter_of(name, parameter.shape))
    return network
