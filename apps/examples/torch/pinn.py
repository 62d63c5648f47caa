"""pinn.ts in PyTorch."""
import math, time, torch
from torch import nn

torch.manual_seed(3)
end = 2 * math.pi
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4000)
slope = lambda u, t: torch.autograd.grad(u.sum(), t, create_graph=True)[0]
start = time.time()
for _ in range(4000):
    t = torch.linspace(0, end, 64).reshape(64, 1).requires_grad_()
    zero = torch.zeros(1, 1, requires_grad=True)
    u = net(t / end)
    first = net(zero / end)
    loss = (slope(slope(u, t), t) + u).square().mean() + first.square().sum() + (slope(first, zero) - 1).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
t = torch.linspace(0, end, 101).reshape(101, 1)
print(f"distance {(net(t / end) - t.sin()).abs().max().item():.4f}, {time.time() - start:.1f} s")
