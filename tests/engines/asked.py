"""The one edit tokenmeter makes: what it adds to a request, and takes out of the answer again.

Worked out here from the request and from the bytes alone, so that the tests do not believe the
program about itself.
"""
import json

import answer
import json_spans
from cases import CHAT, COMPLETIONS

INJECT, CONTINUOUS, OBSERVE = POLICIES = ("inject", "continuous", "observe")
AT_END, RUNNING = "include_usage", "continuous_usage_stats"
WANTED = {INJECT: {AT_END}, CONTINUOUS: {AT_END, RUNNING}, OBSERVE: set()}
ANY_KIND = "openai"
"""The kind of which nothing is assumed but what the path says."""
REFUSALS = (400, 422)
"""What a server may say of the addition; it gets the original once more then."""


def added(case, policy, kind=ANY_KIND):
    """The flags that a request goes upstream with and its client had not set."""
    fields = case.fields or {}
    if case.path not in (CHAT, COMPLETIONS) or fields.get("stream") is not True:
        return set()
    options = fields.get("stream_options") or {}
    if options.get(RUNNING) and not options.get(AT_END):
        return set()
    wanted = WANTED[policy]
    if kind == "llama_cpp":                               # its completions say it anyway, and it has no running counts
        wanted = set() if case.path == COMPLETIONS else wanted - {RUNNING}
    return {flag for flag in wanted if not options.get(flag)}


def expect_request(sent, seen, flags):
    """`seen` is `sent` with these flags in its stream_options, and with nothing else changed."""
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
        events = [event if answer.is_usage_only(event) else without_usage(event) for event in events]
    return b"".join(events) + rest


def without_usage(event):
    head, data, text = event.partition(b"data: ")
    if not text.startswith(b"{"):
        return event
    return head + data + json_spans.without(text.decode(), "usage").encode()
