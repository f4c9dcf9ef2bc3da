"""The throughput of vLLM with the plugin against that without: pairs of equal batches, alternating, and their ratio.

Both servers run; only one has requests at a time. The model is tiny, so that nearly all time is spent in Python, where the
plugin is: with a real model the share is smaller.
"""
import argparse
import pathlib
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from serving import serving                             # first: it makes the tools of tests/engines importable

import call
from case import Case

STREAMS, TOKENS = 8, 400


def batch(server):
    """Streams of fixed length, all at once. Returns tokens per second, and the API process's processor time, in µs a token."""
    fields = {"model": "tiny", "prompt": "the people of the world", "max_tokens": TOKENS, "ignore_eos": True, "stream": True, "seed": 1}
    case = Case("overhead", "/v1/completions", fields=fields)
    begun, ticks = time.monotonic(), server.process.ticks()
    with ThreadPoolExecutor(STREAMS) as pool:
        responses = list(pool.map(lambda _: call.send(server.address, case), range(STREAMS)))
    seconds = time.monotonic() - begun
    assert all(response.status == 200 and response.whole for response in responses)
    return STREAMS * TOKENS / seconds, (server.process.ticks() - ticks) * 10_000 / (STREAMS * TOKENS)


def folder(parent, name):
    made = pathlib.Path(parent, name)
    made.mkdir()
    return made


def measure(pairs):
    measured = {True: [], False: []}
    with tempfile.TemporaryDirectory() as parent, serving(folder(parent, "with")) as with_plugin, \
            serving(folder(parent, "without"), plugin=False, VLLM_PLUGINS="") as without:
        for server in (with_plugin, without) * 2:          # warm
            batch(server)
        for number in range(pairs):
            order = (with_plugin, without) if number % 2 else (without, with_plugin)
            for server in order:
                measured[server is with_plugin].append(batch(server))
    ratios = [one[0] / other[0] for one, other in zip(measured[True], measured[False])]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{pairs} pairs of {STREAMS} streams with {TOKENS} tokens each")
    for plugin, name in ((True, "with"), (False, "without")):
        rates, costs = zip(*measured[plugin])
        print(f"{name} the plugin: {statistics.median(rates):.0f} tokens/s, {statistics.mean(costs):.0f} µs of the API process a token")
    print(f"throughput with the plugin ÷ without: {middle:.3f} (median of pairs; quartiles {low:.3f} and {high:.3f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    measure(parser.parse_args().pairs)
