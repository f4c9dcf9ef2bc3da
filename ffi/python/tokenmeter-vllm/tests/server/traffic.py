"""Random requests of every kind, of which some leave at a random moment."""
import random
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import answer
import call
from mixture import Mixture

AT_ONCE = 12
"""More than vLLM runs at once, so that some leave the queue."""


class Traffic:
    """Requests of a seed. `leaving` is the share of those that leave; `but` is true of cases to leave out."""

    def __init__(self, seed, choices, leaving=0, but=lambda case: False):
        print(f"TOKENMETER_SEED={seed}")
        self.random, self.choices, self.leaving, self.but = random.Random(f"{seed} {choices}"), choices, leaving, but
        self.mixture = Mixture(SimpleNamespace(name="vllm"), self.random)

    def plan(self):
        """A plan whose case is not left out."""
        while True:
            plan = self.draw()
            if not self.but(plan[0]):
                return plan

    def draw(self):
        """A request, and after how many events, or hundredths of a second, its client leaves; None if it stays."""
        if self.random.random() < self.leaving:
            long = self.random.random() < 0.5
            streamed = self.random.random() < 0.6
            case = self.mixture.long(streamed) if long else self.mixture.draw(self.random.choice(self.choices))
            return case, self.random.choice([0, 0, 1, 2, self.random.randint(0, 60)])
        if self.choices != (1,) and self.random.random() < 0.05:
            return self.mixture.beams(), None
        return self.mixture.draw(self.random.choice(self.choices)), None

    def send(self, address, plan):
        """Sends a request. Returns the response; None if the client left."""
        case, after = plan
        if after is None:
            return call.send(address, case)
        with call.Call(address, case) as leaving:
            if case.streamed and after:
                leaving.read_until(lambda received: received.count(b"data: ") >= after)
            else:
                time.sleep(after / 100)
        return None

    def run(self, address, count, at_once=AT_ONCE):
        """Sends this number of requests, several at once. Returns the responses."""
        plans = [self.plan() for _ in range(count)]
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(lambda plan: self.send(address, plan), plans))


def expect_answers(responses):
    """Asserts that all clients that stayed got whole answers."""
    for response in filter(None, responses):
        assert response.status == 200 and response.whole, response.body


def answers(address, seed, count):
    """The answers to this number of seeded requests, one after the other: choices, last usage, errors, end marks.

    Chunks of a stream are joined, because vLLM cuts it by the time that each token takes.
    """
    draw = random.Random(seed)
    mixture, found = Mixture(SimpleNamespace(name="vllm"), draw), []
    for _ in range(count):
        case = draw.choice([mixture.chat, mixture.completion])(draw.choice([1, 1, 2]))
        read = answer.read(call.send(address, case))
        found.append((read.choices, read.usage[-1:], read.errors, read.done))
    return found
