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

import call
from case import Case
from serving import serving

STREAMS, TOKENS = 8, 200


def batch(server):
    """Streams of fixed length, all at once. Returns tokens per second."""
    fields = {"model": "tiny", "prompt": "the people of the world", "max_tokens": TOKENS, "ignore_eos": True, "stream": True, "seed": 1}
    case = Case("overhead", "/v1/completions", fields=fields)
    begun = time.monotonic()
    with ThreadPoolExecutor(STREAMS) as pool:
        responses = list(pool.map(lambda _: call.send(server.address, case), range(STREAMS)))
    seconds = time.monotonic() - begun
    assert all(response.status == 200 and response.whole for response in responses)
    return STREAMS * TOKENS / seconds


def folder(parent, name):
    made = pathlib.Path(parent, name)
    made.mkdir()
    return made


def measure(pairs):
    ratios, rates = [], ([], [])
    with tempfile.TemporaryDirectory() as parent, serving(folder(parent, "with")) as with_plugin, \
            serving(folder(parent, "without"), plugin=False, VLLM_PLUGINS="") as without:
        for server in (with_plugin, without) * 2:          # warm
            batch(server)
        for number in range(pairs):
            order = (with_plugin, without) if number % 2 else (without, with_plugin)
            rate = {server: batch(server) for server in order}
            rates[0].append(rate[with_plugin])
            rates[1].append(rate[without])
            ratios.append(rate[with_plugin] / rate[without])
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{pairs} pairs of {STREAMS} streams with {TOKENS} tokens each")
    print(f"with the plugin {statistics.median(rates[0]):.0f} tokens/s, without {statistics.median(rates[1]):.0f} tokens/s")
    print(f"ratio {middle:.3f} (median; quartiles {low:.3f} and {high:.3f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    measure(parser.parse_args().pairs)
