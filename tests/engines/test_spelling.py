"""A search over spellings of paths and bodies: every answer of the engine with tokens has a record.

Paths are spelled as some server might read them, bodies as some parser might take them, drawn by a seed
(`TOKENMETER_SEED`). Most are refused by the engine; of the others none may pass the meter by.
"""
import gzip
import json
import os
import random
import socket
from dataclasses import dataclass

import pytest

import asked
import call
import cases
import wire
from meter import EXCHANGES, TOKENS

SEED = int(os.environ.get("TOKENMETER_SEED", "1"))
DRAWN = 240
"""Random spellings for each engine, besides each way alone."""

FEEDS = ("%0a", "%0A", "%0A/", "/%0a", "%u000a", "%0a%0a", "%0d%0a", "%0d", "%00", "%20", "%09", "%0b", "%85", "%e2%80%a8")
TAILS = ("/", "//", "/.", "/x/..", ";x", "%3b", "%3f", "?", "?x=1", "%23", "%2f", "%5c", "%2F%0a", *FEEDS)

ENDPOINTS = {
    "llamacpp": ("/v1/chat/completions", "/chat/completions", "/v1/completions", "/completion", "/completions",
                 "/v1/messages", "/v1/responses", "/infill", "/invocations", "/api/chat", "/v1/systemone"),
    "vllm": ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/invocations",
             "/inference/v1/generate", "/v1/systemone", "/cohere/v2/chat"),
}
PREFIXES = ("", "", "", "/.", "/x/..", "/", "/v1", "/%2e")


@dataclass(frozen=True)
class Spelling:
    path: str
    body: bytes
    headers: tuple
    what: str
    """The applied ways, to identify a spelling that bypasses the meter."""

    def bytes(self, host):
        head = [f"POST {self.path} HTTP/1.1", f"Host: {host}", "Connection: close", f"Content-Length: {len(self.body)}",
                *(f"{name}: {value}" for name, value in self.headers)]
        return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + self.body


def asking(path, stream):
    """The endpoint's simplest request."""
    fields = {"model": "tiny", "stream": stream}
    if path.endswith("/responses"):
        return fields | {"input": "the people of", "max_output_tokens": 4}
    if path.endswith("/infill"):
        return fields | {"input_prefix": "the ", "input_suffix": " of", "n_predict": 4}
    if path.endswith("/inference/v1/generate"):
        return fields | {"token_ids": [5, 6, 7], "sampling_params": {"max_tokens": 4}}
    if path.endswith("/systemone"):
        return fields | {"input": "a or b", "decisions": ["a", "b"]}
    if path.endswith("ompletion") or path.endswith("ompletions") and "chat" not in path:
        return fields | {"prompt": "the people of", "max_tokens": 4, "n_predict": 4}
    return fields | {"messages": cases.ASK, "max_tokens": 4}


# --- paths

def escaped(draw, path, form):
    return "".join(form % ord(c) if c != "/" and draw.random() < 0.3 else c for c in path)


PATHS = {
    "plain": lambda draw, path: path,
    "percent": lambda draw, path: escaped(draw, path, draw.choice(("%%%02x", "%%%02X"))),
    "percent-u": lambda draw, path: escaped(draw, path, draw.choice(("%%u%04x", "%%u%04X"))),
    "twice": lambda draw, path: escaped(draw, path, "%%25%02x"),
    "half-pair": lambda draw, path: path[:4] + "%ud801" + path[4:],
    "slashes": lambda draw, path: path.replace("/", "//", draw.randint(1, 3)),
    "escaped-slash": lambda draw, path: "/" + path[1:].replace("/", draw.choice(("%2f", "%2F", "%u002f")), draw.randint(1, 2)),
    "loud": lambda draw, path: path.upper(),
    "title": lambda draw, path: path.title(),
    "tail": lambda draw, path: path + draw.choice(TAILS),
    "prefix": lambda draw, path: draw.choice(PREFIXES) + path,
    "absolute": lambda draw, path: "http://127.0.0.1" + path,
    "long-s": lambda draw, path: path.replace("s", "%c5%bf", 1),
}


# --- bodies: from members as a list of pairs, because some are repeated

def dumped(members):
    return "{" + ",".join(f"{key}:{value}" for key, value in members) + "}"


def recased(draw, members):
    name = draw.choice([key for key, _ in members])
    return [(key.upper() if key == name else key, value) for key, value in members]


def with_one(*pairs):
    """The members with these before or after them."""
    return lambda draw, members: draw.choice(([*pairs, *members], [*members, *pairs]))


def renamed(draw, members):
    """A key written with escapes."""
    name = draw.choice([key for key, _ in members])
    return [('"' + "".join("\\u%04x" % ord(c) for c in key[1:-1]) + '"' if key == name else key, value) for key, value in members]


def model_is(value):
    return lambda draw, members: [(key, value if key == '"model"' else old) for key, old in members]


MEMBERS = {
    "plain": lambda draw, members: members,
    "recased": recased,
    "escaped-key": renamed,
    "lone-surrogate": with_one(('"\\ud800"', "0")),
    "lone-surrogate-value": with_one(('"user"', '"\\ud800"')),
    "other-model": with_one(('"MODEL"', '"x"')),
    "model-twice": with_one(('"model"', '"tiny"')),
    "nan": with_one(('"x"', "NaN")),
    "deep": with_one(('"x"', "[" * 140 + "]" * 140)),
    "model-number": model_is("5"),
    "model-null": model_is("null"),
    "model-list": model_is('["tiny"]'),
    "model-away": lambda draw, members: [(key, value) for key, value in members if key != '"model"'],
    "stream-word": lambda draw, members: [(key, '"yes"' if (key, value) == ('"stream"', "true") else value) for key, value in members],
    "stream-one": lambda draw, members: [(key, "1" if (key, value) == ('"stream"', "true") else value) for key, value in members],
    "running-alone": with_one(('"stream_options"', '{"include_usage":false,"continuous_usage_stats":true}')),
    "options-number": with_one(('"stream_options"', "7")),
}

ENCODINGS = {
    "utf-8": lambda text: text.encode(),
    "mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "two-marks": lambda text: b"\xef\xbb\xbf" * 2 + text.encode(),
    **{name: lambda text, name=name: text.encode(name) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-7")},
    "utf-16-mark-be": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "blank": lambda text: " \r\n\t" + text + "\n",
    "feed": lambda text: "\f" + text,
    "behind": lambda text: text + "x",
    "comment": lambda text: "/**/" + text,
    "single-quotes": lambda text: text.replace('"', "'"),
}

HEADERS = {
    "json": (("Content-Type", "application/json"),),
    "charset": (("Content-Type", "application/json; charset=utf-16"),),
    "none": (),
    "text": (("Content-Type", "text/plain"),),
    "form": (("Content-Type", "application/x-www-form-urlencoded"),),
    "suffix": (("Content-Type", "application/vnd.api+json"),),
    "coding": (("Content-Type", "application/json"), ("Content-Encoding", "gzip")),
    "digest": (("Content-Type", "application/json"), ("Content-Digest", "x")),
}


def spelled(draw, path, stream, way_of_path, way_of_members, encoding, headers):
    members = [(json.dumps(key), json.dumps(value)) for key, value in asking(path, stream).items()]
    text = dumped(MEMBERS[way_of_members](draw, members))
    body = ENCODINGS[encoding](text)
    spelling = PATHS[way_of_path](draw, path)
    what = f"{path} stream={stream} path={way_of_path} members={way_of_members} {encoding} {headers}"
    return Spelling(spelling, body if isinstance(body, bytes) else body.encode(), HEADERS[headers], what)


def spellings(engine, seed):
    """Every way alone, and then random combinations."""
    draw = random.Random(f"{engine}-{seed}")
    endpoints = ENDPOINTS[engine]
    for path in endpoints:
        for stream in (False, True):
            yield spelled(draw, path, stream, "plain", "plain", "utf-8", "json")
    first = [path for path in endpoints if path in (cases.CHAT, "/invocations", "/completion")]
    for path in first:
        for tail in TAILS:
            yield Spelling(path + tail, json.dumps(asking(path, False)).encode(), HEADERS["json"], f"{path} tail={tail}")
        ways = [(way, "plain", "utf-8", "json") for way in PATHS]
        ways += [("plain", way, "utf-8", "json") for way in MEMBERS]
        ways += [("plain", "plain", way, "json") for way in ENCODINGS]
        ways += [("plain", "plain", "utf-8", way) for way in HEADERS]
        for way in ways:
            yield spelled(draw, path, draw.random() < 0.5, *way)
    for _ in range(DRAWN):
        ways = (draw.choice(list(table)) if draw.random() < 0.6 else next(iter(table)) for table in (PATHS, MEMBERS, ENCODINGS, HEADERS))
        yield spelled(draw, draw.choice(endpoints), draw.random() < 0.5, *ways)


def send(address, spelling):
    with socket.create_connection(address, timeout=call.SECONDS) as connection:
        connection.sendall(spelling.bytes("%s:%d" % address))
        received = bytearray()
        while True:
            try:
                data = connection.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                return wire.parse(bytes(received), 0, True, "POST")
            received += data


def has_tokens(response):
    """True if the answer contains generated text, or a token count."""
    if response is None or response.status != 200:
        return False
    values = []
    for line in response.body.decode(errors="replace").splitlines():
        text = line.removeprefix("data:").strip()
        if text.startswith(("{", "[")) and text != "[DONE]":
            try:
                values.append(json.loads(text))
            except ValueError:
                continue
    if not values:
        try:
            values.append(json.loads(response.body))
        except ValueError:
            return False
    return any(counts(value) for value in values)


def counts(value):
    """True if a JSON value contains a token count, or text of an answer, anywhere."""
    if isinstance(value, list):
        return any(map(counts, value))
    if not isinstance(value, dict):
        return False
    for key, inside in value.items():
        if key.endswith("_tokens") or key in ("tokens_predicted", "tokens_evaluated"):
            if isinstance(inside, int) and inside > 0:
                return True
        if key in ("content", "text", "token_ids", "output_ids") and inside and "choices" not in value:
            return True
    return any(counts(inside) for inside in value.values() if isinstance(inside, (dict, list)))


@pytest.mark.metered
@pytest.mark.engine("llamacpp", "vllm")                   # the servers with lenient parsers
def test_no_spelling_bypasses_the_meter(rig):
    # with the kind configured: it determines llama.cpp's own endpoints and OpenAI's `/completions`
    meter, answered, missed = rig.meter_of(asked.INJECT, rig.engine.kind), 0, []
    for spelling in spellings(rig.engine.name, SEED):
        before = meter.samples()
        response = send(meter.address, spelling)
        if not has_tokens(response):
            continue
        answered += 1
        moved = meter.moved(before)
        if moved.of(EXCHANGES) != 1 or not moved.of(TOKENS):
            missed.append(f"{spelling.what}: {spelling.path} {spelling.body[:60]!r}")
    print(f"{rig.engine.name}, seed {SEED}: {answered} spellings were answered with tokens")
    assert answered > 50, "the search finds nothing to look at"
    assert not missed, "\n".join(missed)
