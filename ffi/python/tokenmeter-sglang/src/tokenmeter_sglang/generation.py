"""One call of `generate_request`: a prompt or several, each with n choices."""
import time
from typing import Any

from tokenmeter import Close, Exchange, Meter

DIALECT = "sglang_generate"
"""The dialect of all requests: the hook does not see which endpoint they came by."""


class Generation:
    """The counts of a call. SGLang's outputs have running totals, of which the growth is added."""

    def __init__(self, meter: Meter, request: Any, model: str) -> None:
        self.meter, self.request, self.model = meter, request, model
        self.at_ns = time.monotonic_ns()
        self.exchange: Exchange | None = None
        self.totals: dict[int, int] = {}
        self.prompts: set[int] = set()
        self.finished: set[int] = set()
        self.tokens = meter.output_tokens()

    @property
    def is_finished(self) -> bool:
        """True if every choice that has output finished."""
        return bool(self.totals) and self.finished >= set(self.totals)

    def begin(self) -> Exchange:
        """Begins the exchange, at the first output: only then SGLang has normalised the request."""
        if self.exchange is None:
            rid = self.request.rid
            self.exchange = self.meter.begin_described(
                dialect=DIALECT,
                model=self.model,
                request_id=str((rid[0] if isinstance(rid, list) else rid) or ""),
                answers=self.choices * (1 if getattr(self.request, "is_single", True) else self.request.batch_size),
                stream=bool(getattr(self.request, "stream", False)),
                at_ns=self.at_ns,
            )
        return self.exchange

    @property
    def choices(self) -> int:
        """Choices of each prompt."""
        return getattr(self.request, "parallel_sample_num", None) or 1

    def read(self, output: Any) -> None:
        """Counts an output: that of one choice, or a list with all of them."""
        exchange = self.begin()
        for position, one in enumerate(output if isinstance(output, list) else [output]):
            facts, choice = one["meta_info"], one.get("index", position)
            total = facts.get("completion_tokens", 0)
            if (prompt := choice // self.choices) not in self.prompts:
                self.prompts.add(prompt)
                exchange.prompt_tokens(input=facts["prompt_tokens"], cached=facts.get("cached_tokens"))
            if (new := total - self.totals.get(choice, 0)) > 0:
                self.tokens.add(exchange, choice, new)
            self.totals[choice] = total
            if (reason := facts.get("finish_reason")) and choice not in self.finished:
                self.finished.add(choice)
                self.tokens.send()
                exchange.finish(choice, reason["type"] if isinstance(reason, dict) else str(reason))
        self.tokens.send()

    def end(self, close: Close) -> None:
        """Ends the exchange."""
        self.begin().end_unread(close)
