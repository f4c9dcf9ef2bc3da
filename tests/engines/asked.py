"""The usage edit of tokenmeter: the options added to a request, and the parts removed from the answer.

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
"""An unknown kind: only the path determines the options."""
ADD_PLACEHOLDERS = {"ollama"}
"""Kinds that send a usage without counts in every other frame, if usage is requested only."""
REFUSALS = (400, 422)
"""Statuses by which a server may reject the options; it then gets the original request."""


def added(case, policy, kind=ANY_KIND):
    """The options in the forwarded request that its client did not set."""
    fields = case.fields or {}
    if case.path not in (CHAT, COMPLETIONS, RESPONSES) or fields.get("stream") is not True:
        return set()
    options = fields.get("stream_options") or {}
    alone = options.get(RUNNING) and not options.get(AT_END)
    # these servers ignore running counts alone
    void = kind == "llama_cpp" or kind == "vllm" and policy == CONTINUOUS
    if alone and not void:
        return set()
    wanted = WANTED[policy]
    if kind == "llama_cpp" and policy == CONTINUOUS:
        wanted = wanted - {RUNNING} | {TIMINGS}
    if case.path == RESPONSES:
        wanted = wanted & {TIMINGS}
    if kind == "llama_cpp" and case.path == COMPLETIONS:  # they send usage at the end anyway
        wanted = wanted - {AT_END}
    flags = {flag for flag in wanted if not (fields if flag == TIMINGS else options).get(flag)}
    return flags | {RUNNING} if alone and AT_END in flags else flags


def expect_request(sent, seen, flags):
    """Asserts that `seen` is `sent` with these options in its stream_options, or beside them, and otherwise
    unchanged."""
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
    """Asserts that one part was inserted, and everything else is unchanged."""
    same = next((n for n, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    assert new.endswith(old[same:]) and len(new) >= len(old)


def taken_out(body, flags, adds_placeholders=False):
    """The body of a stream without the effects of these options: without events that have only usage, and without the
    usage members of the others."""
    events = answer.events(body)
    rest = body[sum(map(len, events)):]
    if AT_END in flags:
        events = [event for event in events if not answer.is_usage_only(event)]
    if RUNNING in flags or AT_END in flags and adds_placeholders:
        events = [event if answer.is_usage_only(event) else without(event, "usage") for event in events]
    if TIMINGS in flags:
        events = [event if is_last(event) else without(event, "timings") for event in events]
    return b"".join(events) + rest


def is_last(event):
    """True if an event ends an answer: llama.cpp's have timings then in any case."""
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
