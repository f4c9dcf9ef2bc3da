"""A recording stand-in for `tokenmeter.Meter`: what was said of each exchange."""
from tokenmeter import Close


class RecordingExchange:
    def __init__(self, meter, facts):
        self.meter, self.facts, self.is_open = meter, facts, True
        self.output, self.input, self.cached, self.written, self.by_engine = {}, 0, 0, 0, False
        self.request, self.response, self.status, self.reasons, self.waited = b"", b"", None, {}, 0
        self.ended = self.discarded = None

    def call(self, name):
        if self.meter.failing == name:
            raise RuntimeError(f"{name} fails")
        assert self.is_open, f"{name} after the end"

    def request_body(self, data):
        self.call("request_body")
        self.request += data

    def request_complete(self, at_ns=None):
        self.call("request_complete")

    def response_head(self, status, headers, at_ns=None):
        self.call("response_head")
        self.status, self.is_open = status, self.is_open and not self.meter.rejects_head
        return self.is_open

    def response_body(self, data, at_ns=None):
        self.call("response_body")
        self.response += data

    def client_wait(self, ns):
        self.waited += ns

    def count_by_engine(self):
        self.call("count_by_engine")
        assert not self.by_engine
        self.by_engine = True

    def prompt_tokens(self, *, input, cached, cache_write):
        self.call("prompt_tokens")
        self.input, self.cached, self.written = self.input + input, self.cached + cached, self.written + cache_write

    def finish(self, choice, reason):
        self.call("finish")
        self.reasons[choice] = reason

    def end_unread(self, close, at_ns=None):
        self.call("end")
        self.is_open, self.ended = False, Close(close)

    def discard(self):
        self.is_open, self.discarded = False, True

    @property
    def tokens(self):
        return sum(self.output.values())


class RecordingTokens:
    def __init__(self, meter):
        self.meter, self.entries = meter, []

    def add(self, exchange, choice, tokens, reasoning=0):
        exchange.call("add")
        self.entries.append((exchange, choice, tokens))

    def clear(self):
        self.entries.clear()

    def send(self, at_ns=None):
        self.meter.sends += bool(self.entries)
        for exchange, choice, tokens in self.entries:
            exchange.call("send")
            exchange.output[choice] = exchange.output.get(choice, 0) + tokens
        self.entries.clear()


class RecordingMeter:
    """`failing` is the name of the call that raises."""

    def __init__(self):
        self.exchanges, self.failing, self.sends, self.rejects_head = [], None, 0, False

    def begin(self, *, method, path, headers=(), peer="", at_ns=None):
        if self.failing == "begin":
            raise RuntimeError("begin fails")
        if not path.startswith("/v1/"):
            return None
        self.exchanges.append(RecordingExchange(self, {"path": path, "peer": peer, "headers": list(headers)}))
        return self.exchanges[-1]

    def begin_described(self, **facts):
        if self.failing == "begin_described":
            raise RuntimeError("begin_described fails")
        self.exchanges.append(RecordingExchange(self, facts))
        return self.exchanges[-1]

    def output_tokens(self):
        return RecordingTokens(self)

    def metrics(self):
        name = "tokenmeter_tokens_total"
        return f"# HELP {name} Tokens.\n# TYPE {name} counter\n{name} {self.tokens}\n"

    @property
    def tokens(self):
        """Output tokens of all exchanges with a record."""
        return sum(exchange.tokens for exchange in self.exchanges if exchange.ended is not None)
