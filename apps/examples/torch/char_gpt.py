"""char-gpt.ts in PyTorch: the same text, sizes and number of steps."""
import time, torch
from torch import nn

text = """Twinkle, twinkle, little star, how I wonder what you are.
Up above the world so high, like a diamond in the sky.
When the blazing sun is gone, when he nothing shines upon,
then you show your little light, twinkle, twinkle, all the night.
"""
torch.manual_seed(1)
chars = sorted(set(text))
codes = [chars.index(c) for c in text + text]
context, batch, width = 32, 16, 64


class CharGpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(len(chars), width), nn.Embedding(context, width)
        layer = lambda: nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList([layer() for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, len(chars))
        self.mask = torch.triu(torch.full((context, context), float("-inf")), 1)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids) + self.places(torch.arange(n))
        for block in self.blocks:
            x = block(x, self.mask[:n, :n])
        return self.head(self.norm(x))


model = CharGpt()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
start = time.time()
for i in range(200):
    rows = [((i * batch + row) * 37) % len(text) for row in range(batch)]
    part = lambda shift: torch.tensor([codes[at + shift : at + shift + context] for at in rows])
    loss = nn.functional.cross_entropy(model(part(0)).reshape(-1, len(chars)), part(1).reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, {time.time() - start:.1f} s")
