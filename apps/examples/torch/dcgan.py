"""dcgan.ts in PyTorch: the same discs, sizes and number of steps."""
import time, torch
from torch import nn

torch.manual_seed(8)
side, batch, noise = 16, 32, 16


def real():
    places = torch.arange(side).reshape(1, 1, side, 1)
    x, y = torch.rand(batch, 1, 1, 1) * 6 + 5, torch.rand(batch, 1, 1, 1) * 6 + 5
    away = (places - y).square() + (places.reshape(1, 1, 1, side) - x).square()
    return (away < 16).float() * 2 - 1


def grow(inputs, outputs):
    return nn.ConvTranspose2d(inputs, outputs, 4, 2, 1)


def norm(channels):
    return [nn.BatchNorm2d(channels), nn.ReLU()]


generator = nn.Sequential(nn.Linear(noise, 512), nn.Unflatten(1, (32, 4, 4)), *norm(32), grow(32, 16), *norm(16), grow(16, 1), nn.Tanh())
first, second = nn.Conv2d(1, 16, 4, 2, 1), nn.Conv2d(16, 32, 4, 2, 1)
critic = nn.Sequential(first, nn.LeakyReLU(0.2), second, nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(512, 1))
makes, tells = (torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.999)) for m in (generator, critic))
bce = nn.functional.binary_cross_entropy_with_logits
start = time.time()
for i in range(400):
    drawn = generator(torch.randn(batch, noise)).detach()
    loss = bce(critic(real()), torch.ones(batch, 1)) + bce(critic(drawn), torch.zeros(batch, 1))
    tells.zero_grad()
    loss.backward()
    tells.step()
    loss = bce(critic(generator(torch.randn(batch, noise))), torch.ones(batch, 1))
    makes.zero_grad()
    loss.backward()
    makes.step()
with torch.no_grad():
    grey = (generator(torch.randn(batch, noise)).abs() < 0.9).float().mean().item()
print(f"grey pixels {100 * grey:.1f} %, {time.time() - start:.1f} s")
