"""resnet.ts in PyTorch: steps of training on pictures of noise, which take as long."""
import time, torch
from torch import nn

torch.manual_seed(10)
width = 16


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        conv = lambda n, size, by: nn.Conv2d(n, outputs, size, by, size // 2, bias=False)
        norm = lambda: nn.BatchNorm2d(outputs)
        self.body = nn.Sequential(conv(inputs, 3, stride), norm(), nn.ReLU(), conv(outputs, 3, 1), norm())
        self.shortcut = nn.Sequential() if inputs == outputs else nn.Sequential(conv(inputs, 1, stride), norm())

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


blocks, inputs = [], width
for stage, times in enumerate([1, 2, 4, 8]):
    blocks += [Residual(inputs, width * times, 1 if stage == 0 else 2), Residual(width * times, width * times, 1)]
    inputs = width * times
first = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
model = nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
x, y = torch.rand(16, 3, 32, 32), torch.randint(10, (16,))
start = time.time()
for _ in range(60):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{time.time() - start:.1f} s")
