"""tabular.ts in PyTorch, with the table made and read by hand: standardised numbers, a column for each word, gaps filled with the mean."""
import math, random, time, torch
from torch import nn

random.seed(9)
torch.manual_seed(9)
start = time.time()
places = {"centre": 2.2, "suburb": 1.3, "village": 0.8}
lines = []
for _ in range(1200):
    area, rooms, year = 40 + 160 * random.random(), random.randint(1, 6), random.randint(1900, 2019)
    place = random.choice(list(places))
    price = area * places[place] * (1 + 0.3 * math.sin(year / 20)) + 9 * rooms + 8 * (random.random() - 0.5)
    lines.append(f"{area:.1f},{'' if random.random() < 0.05 else rooms},{year},{place},{price:.1f}")
rows = [line.split(",") for line in lines]
numbers = torch.tensor([[float(v) if v else math.nan for v in row[:3]] for row in rows])
seen = numbers[:1000]
mean = seen.nanmean(0)
numbers = torch.where(numbers.isnan(), mean, numbers)
numbers = (numbers - mean) / numbers[:1000].std(0, unbiased=False)
words = torch.tensor([[float(row[3] == name) for name in places] for row in rows])
x, y = torch.cat([numbers, words], 1), torch.tensor([[float(row[4]) / 100] for row in rows])
model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Dropout(0.05), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for i in range(600):
    at = (i * 100 + torch.arange(100) * 7) % 1000
    loss = nn.functional.mse_loss(model(x[at]), y[at])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    test = y[1000:]
    r2 = 1 - ((model(x[1000:]) - test).square().sum() / (test - test.mean()).square().sum()).item()
print(f"R2 {r2:.3f}, {time.time() - start:.1f} s")
