"""Gemini (generativelanguage.googleapis.com): generateContent, streamGenerateContent, batchEmbedContents, interactions.

Sources: the types of PyPI's `google-genai`, and Google's documents on the API and its errors.
"""
import json

from fake import Reply, event, json_reply
from words import TEXT, THOUGHT, TOOL, fresh

HOST = "generativelanguage.googleapis.com"
CODINGS = ["gzip"]
MODEL = "gemini-9-flash"
USAGE = {
    "promptTokenCount": 25, "candidatesTokenCount": 13, "totalTokenCount": 45, "cachedContentTokenCount": 5,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 25}],
    "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 5}],
    "thoughtsTokenCount": 7,
}
EMBEDDED = 4
INTERACTION_USAGE = {
    "total_input_tokens": 25, "input_tokens_by_modality": [{"modality": "text", "tokens": 25}],
    "total_cached_tokens": 5, "total_output_tokens": 13, "total_tool_use_tokens": 0, "total_thought_tokens": 7,
    "total_tokens": 45,
}
ERRORS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED",
          500: "INTERNAL", 503: "UNAVAILABLE"}
BROKEN = json.dumps({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
                    indent=2).encode() + b"\r\n\r\n"


def headers():
    return [("vary", "Origin"), ("vary", "X-Origin"), ("vary", "Referer"), ("server", "scaffolding on HTTPServer2"),
            ("x-xss-protection", "0"), ("x-frame-options", "SAMEORIGIN"), ("x-content-type-options", "nosniff"),
            ("server-timing", "gfet4t7; dur=651"), ("alt-svc", 'h3=":443"; ma=2592000,h3-29=":443"; ma=2592000')]


def failure(status):
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "22s"}
    error = {"code": status, "message": "Made up for a test.", "status": ERRORS[status],
             **({"details": [delay]} if status == 429 else {})}
    return google_json(status, {"error": error})


def google_json(status, value):
    reply = json_reply(status, headers(), value, indent=2)
    reply.headers[0] = ("content-type", "application/json; charset=UTF-8")
    reply.body += b"\n"
    return reply


def answer(request):
    _, _, method = request.path.rpartition(":")
    if "/interactions" in request.path:
        return interaction(request)
    asked = request.json
    if method in ("embedContent", "batchEmbedContents"):
        one = {"values": [0.125, -0.25, 0.5]}
        value = {"embedding": one} if method == "embedContent" else {"embeddings": [one for _ in asked["requests"]]}
        return google_json(200, value | {"usageMetadata": {"promptTokenCount": EMBEDDED,
                           "promptTokenDetails": [{"modality": "TEXT", "tokenCount": EMBEDDED}]}})
    if method == "countTokens":
        return google_json(200, {"totalTokens": 25, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 25}]})
    base = {"modelVersion": MODEL, "responseId": fresh("r")}
    said = [{"text": part} for part in TEXT]
    if asked.get("tools"):
        said = [{"functionCall": {"name": TOOL["name"], "args": {"city": "Zürich"}}, "thoughtSignature": "c2ln"}]
    if method == "generateContent":
        text = [{"text": "".join(TEXT)}] if not asked.get("tools") else said
        parts = [{"text": "".join(THOUGHT), "thought": True}, *text]
        candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}
        return google_json(200, {"candidates": [candidate], "usageMetadata": USAGE} | base)
    parts = [{"text": "".join(THOUGHT), "thought": True}, *said]
    chunks = [chunk(part, number, len(parts)) | base for number, part in enumerate(parts, 1)]
    if request.query.get("alt") == "sse":
        pieces = [f"data: {json.dumps(value)}\r\n\r\n".encode() for value in chunks]
        kind = "text/event-stream"
    else:
        marks = ["[", *[",\r\n"] * (len(chunks) - 1)]
        pieces = [(mark + json.dumps(value, indent=2)).encode() for mark, value in zip(marks, chunks)] + [b"\n]"]
        kind = "application/json; charset=UTF-8"
    return Reply(200, [("content-type", kind), ("content-disposition", "attachment"), *headers()], pieces=pieces)


def chunk(part, number, of):
    """The counts grow with the stream."""
    last = number == of
    counts = {"promptTokenCount": USAGE["promptTokenCount"], "thoughtsTokenCount": USAGE["thoughtsTokenCount"],
              "cachedContentTokenCount": USAGE["cachedContentTokenCount"]}
    if number > 1:
        counts["candidatesTokenCount"] = USAGE["candidatesTokenCount"] if last else number - 1
    counts["totalTokenCount"] = 32 + counts.get("candidatesTokenCount", 0)
    candidate = {"content": {"parts": [part], "role": "model"}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": "STOP"} if last else {})], "usageMetadata": counts}


def interaction(request):
    """An interaction that is created, streamed or not, or fetched again."""
    if request.method == "GET":
        asked, name = {}, request.path.rpartition("/")[2]
    else:
        asked, name = request.json, fresh("v1_")
    stream = asked.get("stream") or request.query.get("stream") == "true"
    said = {"type": "model_output", "content": [{"type": "text", "text": "".join(TEXT)}]}
    status = "completed"
    if asked.get("tools"):
        said = {"type": "function_call", "id": "call_1", "name": TOOL["name"], "arguments": {"city": "Zürich"}}
        status = "requires_action"
    summary = [{"type": "text", "text": "".join(THOUGHT)}]
    whole = {"id": name, "status": status, "object": "interaction", "model": MODEL, "usage": INTERACTION_USAGE,
             "steps": [{"type": "thought", "signature": "c2ln", "summary": summary}, said]}
    if not stream:
        return google_json(200, whole)
    deltas = [{"type": "text", "text": part} for part in TEXT]
    start = {"type": "model_output"}
    if asked.get("tools"):
        deltas = [{"type": "arguments_delta", "arguments": part} for part in ('{"city": ', '"Zürich"}')]
        start = said | {"arguments": {}}
    events = [("interaction.created", {"interaction": {"id": name, "status": "in_progress", "object": "interaction",
                                                       "model": MODEL}}),
              ("interaction.status_update", {"interaction_id": name, "status": "in_progress"}),
              ("step.start", {"index": 0, "step": {"type": "thought"}}),
              ("step.delta", {"index": 0, "delta": {"type": "thought_summary", "content": summary[0]}}),
              ("step.delta", {"index": 0, "delta": {"type": "thought_signature", "signature": "c2ln"}}),
              ("step.stop", {"index": 0}),
              ("step.start", {"index": 1, "step": start}),
              *[("step.delta", {"index": 1, "delta": delta}) for delta in deltas],
              ("step.stop", {"index": 1}),
              ("interaction.completed", {"interaction": {key: whole[key] for key in whole if key != "steps"}})]
    pieces = [event(value | {"event_type": kind}, kind) for kind, value in events] + [event("[DONE]", "done")]
    return Reply(200, [("content-type", "text/event-stream"), *headers()], pieces=pieces)
