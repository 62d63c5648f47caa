"""dqn.ts in PyTorch: the same cart, networks, rates and rule for the end."""
import random, time, torch
from torch import nn
from cart_pole import MOST, CartPole, play

torch.manual_seed(7)
random.seed(7)
episodes, batch, discount = 150, 64, 0.99
network = lambda: nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
scaled = lambda s: [s[0] / 2.4, s[1] / 2, s[2] / 0.2, s[3] / 2]
q, target = network(), network()
target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.1, 60 * episodes)
memories = []


@torch.no_grad()
def choose(network, state):
    return network(torch.tensor([scaled(state)])).argmax(1).item()


def examine(games, seed):
    cart = CartPole(random.Random(seed))
    return sum(play(cart, lambda state: choose(target, state)) for _ in range(games)) / games


def learn():
    some = [memories[random.randrange(len(memories))] for _ in range(batch)]
    states, actions, following, goes_on = (torch.tensor(column) for column in zip(*some))
    with torch.no_grad():
        best = target(following).gather(1, q(following).argmax(1, keepdim=True)).squeeze(1)
        wanted = best * discount * goes_on + goes_on - 1
    loss = nn.functional.smooth_l1_loss(q(states).gather(1, actions.unsqueeze(1)).squeeze(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for t, p in zip(target.parameters(), q.parameters()):
            t.mul_(0.99).add_(p * 0.01)


def seen(state, action, following):
    memories.append((scaled(state), action, scaled(following or state), float(following is not None)))
    if len(memories) > 20_000:
        memories.pop(0)
    if len(memories) >= 4 * batch:
        learn()


start, cart, lasted = time.time(), CartPole(random.Random(7)), []
for episode in range(episodes):
    explore = max(0.02, 1 - episode / (0.3 * episodes))
    lasted.append(play(cart, lambda s: random.randrange(2) if random.random() < explore else choose(q, s), seen))
    if episode % 10 == 9 and examine(5, 2000) == MOST:
        break
print(f"{lasted[0]} steps at first, {examine(10, 1000):.0f} at last after {len(lasted)} episodes, {time.time() - start:.1f} s")
