"""reinforce.ts in PyTorch: the same cart, network and number of games."""
import random, time, torch
from torch import nn
from cart_pole import CartPole, play

torch.manual_seed(5)
policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
cart = CartPole(random.Random(5))


@torch.no_grad()
def draw(state):
    return torch.distributions.Categorical(logits=policy(torch.tensor([state]))).sample().item()


start, lasted = time.time(), []
for _ in range(300):
    states, actions = [], []
    lasted.append(play(cart, draw, lambda state, action, _: (states.append(state), actions.append(action))))
    returns, total = [], 0.0
    for _ in states:
        total = 1 + 0.98 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std(unbiased=False) + 1e-6)
    chosen = policy(torch.tensor(states)).log_softmax(1).gather(1, torch.tensor(actions).unsqueeze(1)).squeeze(1)
    loss = -(chosen * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
last = sum(play(CartPole(random.Random(99 + i)), draw) for i in range(10)) / 10
print(f"{sum(lasted[:30]) / 30:.0f} steps at first, {last:.0f} at last, {time.time() - start:.1f} s")
