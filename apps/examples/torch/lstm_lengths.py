"""lstm-lengths.ts in PyTorch: batches of one length each, the same sizes and number of steps."""
import time, torch
from torch import nn

torch.manual_seed(4)


def batch_of():
    length = 3 + 2 * int(torch.randint(19, (1,)))
    x = torch.randint(2, (32, length, 1))
    return x.float(), (x.sum((1, 2)) > length / 2).long()


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(1, 24, batch_first=True), nn.Linear(24, 2)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
start = time.time()
for _ in range(400):
    x, y = batch_of()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    right = sum((model(x).argmax(1) == y).float().mean().item() for x, y in (batch_of() for _ in range(10))) / 10
print(f"right about {100 * right:.1f} %, {time.time() - start:.1f} s")
