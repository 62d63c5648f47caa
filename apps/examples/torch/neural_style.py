"""neural-style.ts in PyTorch: the same textures, networks and numbers of steps."""
import random, time, torch
from torch import nn

torch.manual_seed(8)
random.seed(8)
side, batch = 48, 16
y, x = torch.arange(side).float().reshape(side, 1).expand(side, side), torch.arange(side).float().expand(side, side)
textures = [
    lambda x, y, w: torch.sin(y / w).sign(),
    lambda x, y, w: torch.sin(x / w).sign(),
    lambda x, y, w: torch.sin((x + y) / w).sign(),
    lambda x, y, w: (torch.sin(x / w) * torch.sin(y / w)).sign(),
    lambda x, y, w: 2 * (torch.cos(x / w) + torch.cos(y / w) > 1).float() - 1,
    lambda x, y, w: torch.rand(side, side) * 2 - 1,
]


def texture(kind):
    dx, dy, wide, light = random.uniform(0, side), random.uniform(0, side), random.uniform(0.8, 1.6), random.uniform(0.5, 1)
    return (light * textures[kind](x + dx, y + dy, wide) + torch.rand(side, side) * 0.2 - 0.1).unsqueeze(0)


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(n, m, 5, padding=2) for n, m in ((1, 12), (12, 24), (24, 24))])
        self.head = nn.Linear(24, len(textures))

    def maps(self, x):
        found = []
        for conv in self.convs:
            found.append(torch.relu(conv(nn.functional.avg_pool2d(found[-1], 2) if found else x)))
        return found

    def forward(self, x):
        return self.head(self.maps(x)[-1].mean((2, 3)))


def gram(map):
    rows = map.reshape(map.shape[1], -1)
    return rows @ rows.T / rows.shape[1]


def step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


start = time.time()
features = Features()
teacher = torch.optim.Adam(features.parameters(), lr=3e-3)
for _ in range(200):
    kinds = [random.randrange(len(textures)) for _ in range(batch)]
    step(teacher, nn.functional.cross_entropy(features(torch.stack([texture(k) for k in kinds])), torch.tensor(kinds)))
features.requires_grad_(False)
ring = ((x - side / 2).hypot(y - side / 2) - side / 4).abs() < 5
content, style = (ring * 1.4 - 0.6).reshape(1, 1, side, side), texture(2).unsqueeze(0)
wanted, form = [gram(m) for m in features.maps(style)], features.maps(content)[-1]
mse = nn.functional.mse_loss
distance = lambda maps: sum(mse(gram(m), w) / w.square().mean() for m, w in zip(maps, wanted))
pixels = content.clone().requires_grad_()
painter = torch.optim.Adam([pixels], lr=0.03)
for _ in range(200):
    maps = features.maps(pixels)
    step(painter, distance(maps) + mse(maps[-1], form) / form.square().mean() * 0.05)
before, after = (distance(features.maps(t)).item() for t in (content, pixels))
print(f"distance {before:.2g} before, {after:.2g} after; taken for texture {features(pixels).argmax().item()}, {time.time() - start:.1f} s")
