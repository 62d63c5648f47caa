"""unet.ts in PyTorch: discs in noise, the same sizes and number of steps."""
import time, torch
from torch import nn

torch.manual_seed(6)
side, batch, width = 32, 8, 8
rows, columns = torch.arange(side).reshape(side, 1), torch.arange(side)


def batch_of():
    masks = []
    for _ in range(batch):
        x, y, r = (torch.rand(3) * torch.tensor([16, 16, 4]) + torch.tensor([8, 8, 4])).tolist()
        masks.append(((rows - y) ** 2 + (columns - x) ** 2 < r * r).float())
    mask = torch.stack(masks).unsqueeze(1)
    return 0.6 * mask + torch.rand_like(mask), mask


def pair(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle, self.bottom = pair(1, width), pair(width, 2 * width), pair(2 * width, 4 * width)
        self.grow_middle, self.up_middle = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), pair(4 * width, 2 * width)
        self.grow, self.up, self.out = nn.ConvTranspose2d(2 * width, width, 2, 2), pair(2 * width, width), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        first = self.down(x)
        second = self.middle(nn.functional.max_pool2d(first, 2))
        third = self.bottom(nn.functional.max_pool2d(second, 2))
        half = self.up_middle(torch.cat([self.grow_middle(third), second], 1))
        return self.out(self.up(torch.cat([self.grow(half), first], 1)))


model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
start = time.time()
for _ in range(120):
    x, mask = batch_of()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
x, mask = batch_of()
with torch.no_grad():
    found = (model(x) > 0).float()
    both = (found * mask).sum()
    overlap = (both / ((found + mask).sum() - both)).item()
print(f"intersection over union {overlap:.3f}, {time.time() - start:.1f} s")
