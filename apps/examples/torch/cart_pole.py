"""The cart of cart-pole.ts."""
import math

MOST = 200


class CartPole:
    def __init__(self, random):
        self.random, self.state = random, [0.0] * 4

    def reset(self):
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        return self.state

    def push(self, right):
        x, v, angle, turn = self.state
        sine, cosine = math.sin(angle), math.cos(angle)
        pull = ((10 if right else -10) + 0.05 * turn * turn * sine) / 1.1
        turning = (9.8 * sine - cosine * pull) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        going = pull - 0.05 * turning * cosine / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * going, angle + 0.02 * turn, turn + 0.02 * turning]
        return self.state if abs(self.state[0]) < 2.4 and abs(self.state[2]) < math.radians(12) else None


def play(cart, choose, seen=lambda *_: None):
    state = cart.reset()
    for count in range(1, MOST + 1):
        action = choose(state)
        following = cart.push(action == 1)
        seen(state, action, following)
        if following is None:
            break
        state = following
    return count
