"""seq2seq.ts in PyTorch: the same sums, sizes and number of steps. Answers are computed anew for every sign: its decoder keeps no keys and values."""
import random, time, torch
from torch import nn

signs = ".<>0123456789+"  # padding, begin, end, and what sums are made of
padding, begin, end = 0, 1, 2
width, longest, steps = 64, 8, 1200
torch.manual_seed(11)


def sums(count, seed):
    draw = random.Random(seed)
    number = lambda: draw.randrange(10 ** (1 + draw.randrange(2)))
    return [(f"{a}+{b}", f"<{a + b}>") for a, b in ((number(), number()) for _ in range(count))]


def padded(texts):
    longest_text = max(map(len, texts))
    return torch.tensor([[signs.index(sign) for sign in text.ljust(longest_text, ".")] for text in texts])


def batches():
    """Sums of like lengths together, as `bucket` gives them, for as long as they are asked for."""
    all_sums, draw = sums(20_000, 0), random.Random(1)
    while True:
        draw.shuffle(all_sums)
        buckets = {3: [], 4: [], 5: []}
        for one in all_sums:
            bucket = buckets[min(len(one[0]), 5)]
            bucket.append(one)
            if len(bucket) == 64:
                yield tuple(map(padded, zip(*bucket)))
                bucket.clear()
        yield from (tuple(map(padded, zip(*bucket))) for bucket in buckets.values() if bucket)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.signs, self.places = nn.Embedding(len(signs), width, padding_idx=padding), nn.Embedding(longest, width)
        self.transformer = nn.Transformer(width, 4, 2, 2, 128, 0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, len(signs))

    def embedded(self, ids):
        return self.signs(ids) + self.places(torch.arange(ids.shape[1]))

    def encode(self, source):
        return self.transformer.encoder(self.embedded(source), src_key_padding_mask=source == padding)

    def decode(self, target, memory, source):
        later = torch.triu(torch.full((target.shape[1],) * 2, float("-inf")), 1)
        x = self.transformer.decoder(self.embedded(target), memory, later, memory_key_padding_mask=source == padding)
        return self.head(x)

    def forward(self, source, target):
        return self.decode(target, self.encode(source), source)


model = Adder()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
start = time.time()
for i, (x, y) in zip(range(steps), batches()):
    logits = model(x, y[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, len(signs)), y[:, 1:].reshape(-1), ignore_index=padding)
    first = loss.item() if i == 0 else first
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
model.eval()
tests = sums(200, 2)
source = padded([question for question, _ in tests])
with torch.no_grad():
    memory, ids = model.encode(source), torch.full((len(tests), 1), begin)
    for _ in range(longest - 1):
        next_sign = model.decode(ids, memory, source)[:, -1].argmax(1)
        ids = torch.cat([ids, next_sign[:, None]], 1)
texts = ["".join(signs[i] for i in row).partition(">")[0] + ">" for row in ids.tolist()]
right = sum(text == answer for text, (_, answer) in zip(texts, tests)) / len(tests)
print(f"loss {first:.2f} at first, {loss.item():.3f} after, right about {100 * right:.1f} %, {time.time() - start:.1f} s")
