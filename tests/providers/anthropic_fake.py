"""Anthropic: messages.

Sources: the types of PyPI's `anthropic`, and Anthropic's documents on rate limits, errors and streaming.
"""
import datetime

from fake import Reply, event, json_reply
from words import TEXT, THOUGHT, TOOL, fresh

HOST = "api.anthropic.com"
CODINGS = ["zstd", "br", "gzip"]
MODEL = "claude-nova-5"
SERVED = "claude-nova-5-20260701"
BEGUN = {
    "input_tokens": 12, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 30,
    "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 0}, "output_tokens": 1,
    "service_tier": "standard", "inference_geo": "global",
}
USAGE = BEGUN | {"output_tokens": 24, "output_tokens_details": {"thinking_tokens": 9}}
ERRORS = {
    400: ("invalid_request_error", "max_tokens: Field required"), 401: ("authentication_error", "invalid x-api-key"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit of 40,000 input tokens per minute."),
    500: ("api_error", "Internal server error"), 529: ("overloaded_error", "Overloaded"),
}
RESET_S = 42
BROKEN = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")


def headers(remaining=39_000):
    reset = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=RESET_S)
    limits = {"requests": (50, 49), "input-tokens": (40_000, remaining), "output-tokens": (8_000, 8_000),
              "tokens": (48_000, remaining + 8_000)}
    quotas = [(f"anthropic-ratelimit-{quota}-{name}", value) for quota, (limit, left) in limits.items()
              for name, value in (("limit", str(limit)), ("remaining", str(left)), ("reset", f"{reset:%Y-%m-%dT%H:%M:%SZ}"))]
    return [
        ("server", "cloudflare"), ("cf-ray", "9a1b2c3d4e5f6a7d-ZRH"), ("cf-cache-status", "DYNAMIC"), *quotas,
        ("request-id", fresh("req_")), ("anthropic-organization-id", "00000000-0000-4000-8000-000000000000"),
        ("strict-transport-security", "max-age=31536000; includeSubDomains; preload"), ("x-robots-tag", "none"),
        ("via", "1.1 google"), ("x-envoy-upstream-service-time", "845"),
    ]


def failure(status):
    kind, message = ERRORS[status]
    more = [("x-should-retry", "true" if status >= 429 else "false")]
    if status == 429:
        more += [("retry-after", "1"), ("retry-after-ms", "20")]
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": fresh("req_")}
    return json_reply(status, headers(0 if status == 429 else 39_000) + more, body)


def answer(request):
    if request.path.endswith("/count_tokens"):
        return json_reply(200, headers(), {"input_tokens": 49})
    if not request.path.endswith(("/messages", ":rawPredict", ":streamRawPredict")):
        error = {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}}
        return json_reply(404, headers(), error)
    asked = request.json
    blocks = [{"type": "thinking", "thinking": "".join(THOUGHT), "signature": "c2ln"}]
    if asked.get("tools"):
        blocks.append({"type": "tool_use", "id": "toolu_1", "name": TOOL["name"], "input": {"city": "Zürich"}})
    else:
        blocks.append({"type": "text", "text": "".join(TEXT)})
    reason = "tool_use" if asked.get("tools") else "end_turn"
    message = {"model": SERVED, "id": fresh("msg_"), "type": "message", "role": "assistant"}
    ended = {"stop_reason": reason, "stop_sequence": None, "stop_details": None}
    if not asked.get("stream"):
        return json_reply(200, headers(), message | {"content": blocks} | ended | {"usage": USAGE})
    begun = message | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": BEGUN}
    steps = [{"type": "message_start", "message": begun}]
    steps += block(0, {"type": "thinking", "thinking": "", "signature": ""},
                   [{"type": "thinking_delta", "thinking": part} for part in THOUGHT]
                   + [{"type": "signature_delta", "signature": "c2ln"}])
    steps.insert(2, {"type": "ping"})
    if asked.get("tools"):
        parts = [{"type": "input_json_delta", "partial_json": part} for part in ["", *TOOL["arguments"]]]
        steps += block(1, {"type": "tool_use", "id": "toolu_1", "name": TOOL["name"], "input": {}}, parts)
    else:
        steps += block(1, {"type": "text", "text": ""}, [{"type": "text_delta", "text": part} for part in TEXT])
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens", "output_tokens_details")
    steps += [{"type": "message_delta", "delta": ended, "usage": {name: USAGE[name] for name in names}},
              {"type": "message_stop"}]
    return Reply(200, [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"), *headers()],
                 pieces=[padded(step) for step in steps], compressed=False)


def block(index, start, deltas):
    return [{"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index}]


def padded(step):
    """One event; Anthropic pads its objects with spaces, so that their length says less."""
    whole = event(step, step["type"])
    return whole if step["type"] == "ping" else whole.removesuffix(b"}\n\n") + b"       }\n\n"
