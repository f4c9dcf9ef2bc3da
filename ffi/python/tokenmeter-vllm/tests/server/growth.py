"""The growth of a server's counters over traffic, and what must hold of it."""
from exposition import Difference
from process import WAIT_SECONDS, eventually

TOKENS, EXCHANGES = "tokenmeter_tokens_total", "tokenmeter_exchanges_total"
IN_FLIGHT = "tokenmeter_exchanges_in_flight"
INPUT, OUTPUT = ("input", "input_cached", "input_cache_write"), ("output", "output_reasoning")
PROMPT, GENERATED = "vllm:prompt_tokens_total", "vllm:generation_tokens_total"
CACHED = "vllm:prompt_tokens_cached_total"
PLUGIN = "tokenmeter_plugin_"


class Growth:
    """The growth of the counters on the page. `late`: the page gets the plugin's counts later than vLLM's; it is read
    until they agree, for a minute at most."""

    def __init__(self, server, work, late=False):
        before = settled(server)
        self.result = work()
        settled(server)

        def read():
            self.after = settled(server)
            self.moved = Difference(before, self.after)
            return self.tokens(OUTPUT) == self.moved.of(GENERATED)
        eventually(read, WAIT_SECONDS if late else 0)

    def tokens(self, types):
        return sum(self.moved.of(TOKENS, type=type) for type in types)

    def expect_engine(self):
        """Asserts that the hooks are in place, nothing failed, nothing was lost, and all tokens have an exchange."""
        assert self.after.values(PLUGIN + "level", "level") == {"engine": 1, "reported": 0, "off": 0}
        assert self.after.sum(PLUGIN + "failures_total") == self.after.sum(PLUGIN + "lost_exchanges_total") == 0
        assert self.moved.of(PLUGIN + "unattributed_tokens_total") == 0

    def expect_output(self):
        """Asserts that the output of all exchanges is what vLLM generated, by the engine's count."""
        assert self.tokens(OUTPUT) == self.moved.of(GENERATED) > 0
        assert self.moved.of(TOKENS, type="output", provenance="engine") == self.moved.of(TOKENS, type="output")


def settled(server):
    """The page once no exchange is in flight, nothing runs, and the counters are constant."""
    def still():
        page = server.settled_counters()
        return page if page and page.sum(IN_FLIGHT) == 0 else None
    page = eventually(still, 60)
    assert page, "exchanges stay in flight"
    return page
