"""vae.ts in PyTorch: the same pictures, sizes and number of steps."""
import time, torch
from torch import nn

torch.manual_seed(2)
side, batch, latent = 12, 64, 2
rows, columns = torch.arange(side).reshape(side, 1), torch.arange(side)


def pictures(i):
    places = [(2 + (i * 7 + k * 5) % 8, 2 + (i * 3 + k * 11 + k // 8) % 8) for k in range(batch)]
    return torch.stack([((rows - y) ** 2 + (columns - x) ** 2 < 7).float().flatten() for x, y in places])


encoder = nn.Sequential(nn.Linear(side * side, 64), nn.ReLU(), nn.Linear(64, 2 * latent))
decoder = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, side * side))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
start = time.time()
for i in range(1500):
    x = pictures(i)
    mean, log_variance = encoder(x).split(latent, 1)
    code = mean + (log_variance * 0.5).exp() * torch.randn_like(mean)
    told = nn.functional.binary_cross_entropy_with_logits(decoder(code), x, reduction="sum")
    loss = (told + 0.5 * (log_variance.exp() + mean.square() - log_variance - 1).sum()) / batch
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.2f}, {time.time() - start:.1f} s")
