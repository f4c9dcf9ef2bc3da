"""OpenAI: chat completions, responses, embeddings.

Sources: the types of PyPI's `openai`, and OpenAI's documents on rate limits, errors and streaming.
"""
import base64
import struct

from fake import Reply, event, json_reply
from words import ARGUMENTS, TEXT, THOUGHT, TOOL, fresh

HOST = "api.openai.com"
CODINGS = ["zstd", "br", "gzip"]
MODEL = "gpt-6-mini"
SERVED = "gpt-6-mini-2026-06-01"
CHAT = {
    "prompt_tokens": 31, "completion_tokens": 19, "total_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 5, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 6, "audio_tokens": 0, "accepted_prediction_tokens": 0,
                                  "rejected_prediction_tokens": 0},
}
RESPONSE = {
    "input_tokens": 36, "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 4},
    "output_tokens": 21, "output_tokens_details": {"reasoning_tokens": 9}, "total_tokens": 57,
}
EMBEDDING = {"prompt_tokens": 8, "total_tokens": 8}
ERRORS = {
    400: ("invalid_request_error", "unsupported_value", "Unsupported value: 'temperature' does not support 3."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-none."),
    429: ("tokens", "rate_limit_exceeded", "Rate limit reached for gpt-6-mini on tokens per min (TPM)."),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
}
BROKEN = event({"error": {"type": "server_error", "code": None, "message": "An error occurred.", "param": None}})


def headers(remaining=149_984):
    return [
        ("server", "cloudflare"), ("cf-ray", "9a1b2c3d4e5f6a7b-ZRH"), ("cf-cache-status", "DYNAMIC"),
        ("alt-svc", 'h3=":443"; ma=86400'), ("strict-transport-security", "max-age=31536000; includeSubDomains; preload"),
        ("set-cookie", "__cf_bm=aA.bB; path=/; HttpOnly; Secure; SameSite=None"), ("set-cookie", "_cfuvid=c; path=/"),
        ("x-content-type-options", "nosniff"), ("access-control-expose-headers", "X-Request-ID"),
        ("openai-organization", "org-tests"), ("openai-processing-ms", "218"), ("openai-version", "2020-10-01"),
        ("openai-project", "proj_tests"), ("x-envoy-upstream-service-time", "221"), ("x-request-id", fresh("req_")),
        ("x-ratelimit-limit-requests", "500"), ("x-ratelimit-limit-tokens", "150000"),
        ("x-ratelimit-remaining-requests", "499"), ("x-ratelimit-remaining-tokens", str(remaining)),
        ("x-ratelimit-reset-requests", "120ms"), ("x-ratelimit-reset-tokens", "6m0s"),
    ]


def failure(status):
    kind, code, message = ERRORS[status]
    more = [("retry-after", "1"), ("retry-after-ms", "20")] if status in (429, 503) else []
    error = {"message": message, "type": kind, "param": None, "code": code}
    return json_reply(status, headers(0 if status == 429 else 149_984) + more, {"error": error})


def answer(request):
    if request.path.endswith("/chat/completions"):
        return chat(request.json)
    if request.path.endswith("/responses"):
        return response(request.json)
    if request.path.endswith("/embeddings"):
        return embedding(request.json)
    if request.path.endswith("/models"):
        return json_reply(200, headers(), {"object": "list", "data": [model()]})
    error = {"message": f"Invalid URL ({request.method} {request.path})", "type": "invalid_request_error",
             "param": None, "code": None}
    return json_reply(404, headers(), {"error": error})


def model():
    return {"id": MODEL, "object": "model", "created": 1_780_000_000, "owned_by": "system"}


def chat(asked):
    head = {"id": fresh("chatcmpl-"), "created": 1_780_000_000, "model": SERVED, "service_tier": "default",
            "system_fingerprint": "fp_1"}
    if not asked.get("stream"):
        message = {"role": "assistant", "content": "".join(TEXT), "refusal": None, "annotations": []}
        if asked.get("tools"):
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {
                "name": TOOL["name"], "arguments": ARGUMENTS}}]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish(asked)}
        return json_reply(200, headers(), head | {"object": "chat.completion", "choices": [choice], "usage": CHAT}, indent=2)
    head["object"] = "chat.completion.chunk"
    counted = (asked.get("stream_options") or {}).get("include_usage")
    usage = {"usage": None} if counted else {}

    def chunk(delta, reason=None):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return event(head | {"choices": [choice]} | usage | {"obfuscation": "x" * (3 + len(str(delta)) % 7)})
    pieces = [chunk({"role": "assistant", "content": "", "refusal": None})]
    if asked.get("tools"):
        opening = {"index": 0, "id": "call_1", "type": "function", "function": {"name": TOOL["name"], "arguments": ""}}
        pieces += [chunk({"tool_calls": [opening]})]
        pieces += [chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in TOOL["arguments"]]
    else:
        pieces += [chunk({"content": part}) for part in TEXT]
    pieces.append(chunk({}, finish(asked)))
    if counted:
        pieces.append(event(head | {"choices": [], "usage": CHAT, "obfuscation": ""}))
    return stream(pieces + [event("[DONE]")])


def finish(asked):
    return "tool_calls" if asked.get("tools") else "stop"


def stream(pieces):
    return Reply(200, [("content-type", "text/event-stream; charset=utf-8"), *headers()], pieces=pieces, compressed=False)


def response(asked):
    reasoning = {"id": fresh("rs_"), "type": "reasoning", "summary": [{"type": "summary_text", "text": "".join(THOUGHT)}]}
    content = {"type": "output_text", "annotations": [], "logprobs": [], "text": "".join(TEXT)}
    message = {"id": fresh("msg_"), "type": "message", "status": "completed", "role": "assistant", "content": [content]}
    base = {"id": fresh("resp_"), "object": "response", "created_at": 1_780_000_000, "error": None,
            "incomplete_details": None, "instructions": None, "model": SERVED, "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": asked.get("tools", []), "service_tier": "default", "store": True,
            "metadata": {}, "temperature": 1.0, "top_p": 1.0}
    done = base | {"status": "completed", "output": [reasoning, message], "usage": RESPONSE}
    if not asked.get("stream"):
        return json_reply(200, headers(), done, indent=2)
    begun = base | {"status": "in_progress", "output": [], "usage": None}
    place = {"item_id": message["id"], "output_index": 1, "content_index": 0}
    thought = {"item_id": reasoning["id"], "output_index": 0, "summary_index": 0}
    steps = [
        ("response.created", {"response": begun}), ("response.in_progress", {"response": begun}),
        ("response.output_item.added", {"output_index": 0, "item": reasoning | {"summary": []}}),
        *(("response.reasoning_summary_text.delta", thought | {"delta": part}) for part in THOUGHT),
        ("response.output_item.done", {"output_index": 0, "item": reasoning}),
        ("response.output_item.added", {"output_index": 1, "item": message | {"content": [], "status": "in_progress"}}),
        ("response.content_part.added", place | {"part": content | {"text": ""}}),
        *(("response.output_text.delta", place | {"delta": part, "logprobs": [], "obfuscation": "abc"}) for part in TEXT),
        ("response.output_text.done", place | {"text": content["text"], "logprobs": []}),
        ("response.content_part.done", place | {"part": content}),
        ("response.output_item.done", {"output_index": 1, "item": message}), ("response.completed", {"response": done}),
    ]
    return stream([event({"type": name, "sequence_number": number} | value, name)
                   for number, (name, value) in enumerate(steps)])


def embedding(asked):
    vector = [0.125, -0.25, 0.5]
    packed = base64.b64encode(struct.pack("<3f", *vector)).decode()
    data = [{"object": "embedding", "index": 0, "embedding": packed if asked.get("encoding_format") == "base64" else vector}]
    return json_reply(200, headers(), {"object": "list", "data": data, "model": asked["model"], "usage": EMBEDDING}, indent=2)
