"""The one edit tokenmeter makes: what it adds to a request, and takes out of the answer again.

Worked out here from the request and from the bytes alone, so that the tests do not believe the
program about itself.
"""
import json

import answer
import json_spans
from cases import CHAT, COMPLETIONS

INJECT, CONTINUOUS, OBSERVE = POLICIES = ("inject", "continuous", "observe")
AT_END, RUNNING, TIMINGS = "include_usage", "continuous_usage_stats", "timings_per_token"
RESPONSES = "/v1/responses"
WANTED = {INJECT: {AT_END}, CONTINUOUS: {AT_END, RUNNING}, OBSERVE: set()}
ANY_KIND = "openai"
"""The kind of which nothing is assumed but what the path says."""
REFUSALS = (400, 422)
"""What a server may say of the addition; it gets the original once more then."""


def added(case, policy, kind=ANY_KIND):
    """The flags that a request goes upstream with and its client had not set."""
    fields = case.fields or {}
    if case.path not in (CHAT, COMPLETIONS, RESPONSES) or fields.get("stream") is not True:
        return set()
    options = fields.get("stream_options") or {}
    alone = options.get(RUNNING) and not options.get(AT_END)
    # who asks these for running counts alone asks for nothing
    void = kind == "llama_cpp" or kind == "vllm" and policy == CONTINUOUS
    if alone and not void:
        return set()
    wanted = WANTED[policy]
    if kind == "llama_cpp" and policy == CONTINUOUS:
        wanted = wanted - {RUNNING} | {TIMINGS}
    if case.path == RESPONSES:
        wanted = wanted & {TIMINGS}
    if kind == "llama_cpp" and case.path == COMPLETIONS:  # they say it at the end anyway
        wanted = wanted - {AT_END}
    flags = {flag for flag in wanted if not (fields if flag == TIMINGS else options).get(flag)}
    return flags | {RUNNING} if alone and AT_END in flags else flags


def expect_request(sent, seen, flags):
    """`seen` is `sent` with these flags in its stream_options, or beside them, and with nothing else changed."""
    if TIMINGS in flags:
        assert json.loads(seen)[TIMINGS] is True
        seen, flags = json_spans.without(seen.decode(), TIMINGS).encode(), flags - {TIMINGS}
    if not flags:
        assert seen == (sent or b"")
        return
    sent, seen = sent.decode(), seen.decode()
    had, has = (json.loads(text, object_pairs_hook=list) for text in (sent, seen))
    assert [pair for pair in has if pair[0] != "stream_options"] == [pair for pair in had if pair[0] != "stream_options"]
    options_had, options_has = (json.loads(text).get("stream_options") for text in (sent, seen))
    assert options_has == {**(options_had or {}), **dict.fromkeys(flags, True)}
    before, after = (json_spans.value_of(text, "stream_options") for text in (sent, seen))
    if not before:
        assert json_spans.without(seen, "stream_options") == sent
        return
    assert (seen[:after[0]], seen[after[1]:]) == (sent[:before[0]], sent[before[1]:])
    if not set(options_had or ()) & flags:
        expect_one_insertion(sent[slice(*before)].removeprefix("null"), seen[slice(*after)])


def expect_one_insertion(old, new):
    """One piece stands in the new text and not in the old; all else is the same."""
    same = next((n for n, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    assert new.endswith(old[same:]) and len(new) >= len(old)


def taken_out(body, flags):
    """The body of a stream without what these flags brought into it: events that exist only for
    usage, and the usage members of the others."""
    events = answer.events(body)
    rest = body[sum(map(len, events)):]
    if AT_END in flags:
        events = [event for event in events if not answer.is_usage_only(event)]
    if RUNNING in flags:
        events = [event if answer.is_usage_only(event) else without(event, "usage") for event in events]
    if TIMINGS in flags:
        events = [event if is_last(event) else without(event, "timings") for event in events]
    return b"".join(events) + rest


def is_last(event):
    """Whether an event ends an answer: llama.cpp's have timings then, asked or not."""
    value = answer.payload(event)
    if not isinstance(value, dict):
        return True
    finished = any(part.get("finish_reason") for part in value.get("choices", ()))
    return finished or bool(value.get("usage")) or value.get("type") == "response.completed"


def without(event, member):
    """The event without that member of its payload."""
    head, data, text = event.partition(b"data: ")
    if not text.startswith(b"{"):
        return event
    return head + data + json_spans.without(text.decode(), member).encode()
