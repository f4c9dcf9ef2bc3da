"""Random requests of every kind, of which some leave at a random moment."""
import random
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import call
from mixture import Mixture

AT_ONCE = 12
"""More than vLLM runs at once, so that some leave the queue."""


class Traffic:
    """Requests of a seed. `leaving` is the share of those that leave."""

    def __init__(self, server, seed, choices, leaving):
        print(f"TOKENMETER_SEED={seed}")
        self.server, self.random, self.choices, self.leaving = server, random.Random(f"{seed} {choices}"), choices, leaving
        self.mixture = Mixture(SimpleNamespace(name="vllm"), self.random)

    def plan(self):
        """A request, and after how many events, or hundredths of a second, its client leaves; None if it stays."""
        if self.random.random() < self.leaving:
            long = self.random.random() < 0.5
            streamed = self.random.random() < 0.6
            case = self.mixture.long(streamed) if long else self.mixture.draw(self.random.choice(self.choices))
            return case, self.random.choice([0, 0, 1, 2, self.random.randint(0, 60)])
        if self.choices != (1,) and self.random.random() < 0.05:
            return self.mixture.beams(), None
        return self.mixture.draw(self.random.choice(self.choices)), None

    def send(self, plan):
        """Sends a request. Returns its status; None if the client left."""
        case, after = plan
        if after is None:
            return call.send(self.server.address, case).status
        with call.Call(self.server.address, case) as leaving:
            if case.streamed and after:
                leaving.read_until(lambda received: received.count(b"data: ") >= after)
            else:
                time.sleep(after / 100)
        return None

    def run(self, count):
        """Sends this number of requests, several at once."""
        plans = [self.plan() for _ in range(count)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(self.send, plans))
