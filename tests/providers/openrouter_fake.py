"""OpenRouter: OpenAI's shapes with comments while a stream waits, and usage with a cost in every response, whether it was
requested or not.

Source: OpenRouter's documents on streaming and usage accounting.
"""
from fake import Reply, event, json_reply
from words import TEXT, fresh

HOST = "openrouter.ai"
CODINGS = ["br", "gzip"]
MODEL = "vendor/model-1"
PROCESSING = b": OPENROUTER PROCESSING\n\n"
USAGE = {
    "prompt_tokens": 14, "completion_tokens": 17, "total_tokens": 31, "cost": 0.00012, "is_byok": False,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0}, "cost_details": {"upstream_inference_cost": None},
    "completion_tokens_details": {"reasoning_tokens": 0, "image_tokens": 0},
}
ERRORS = {
    401: "No auth credentials found", 402: "Insufficient credits", 429: "Rate limit exceeded: free-models-per-min.",
    502: "Provider returned error",
}
BROKEN = event({"id": "gen-1", "object": "chat.completion.chunk", "created": 1_780_000_000, "model": MODEL, "provider": "Vendor",
                "error": {"code": 502, "message": "Provider disconnected"},
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]})


def headers():
    return [("server", "cloudflare"), ("cf-ray", "9a1b2c3d4e5f6a7c-ZRH"), ("access-control-allow-origin", "*"),
            ("x-clerk-auth-status", "signed-out"), ("permissions-policy", 'payment=(self "https://checkout.stripe.com")'),
            ("referrer-policy", "no-referrer, strict-origin-when-cross-origin"), ("x-generation-id", fresh("gen-"))]


def failure(status):
    error = {"message": ERRORS[status], "code": status, "metadata": {"headers": {"X-RateLimit-Limit": "20"}}}
    more = [("x-ratelimit-limit", "20"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1790000000000")]
    return json_reply(status, headers() + (more if status == 429 else []), {"error": error, "user_id": "user_1"})


def answer(request):
    asked = request.json
    head = {"id": fresh("gen-"), "provider": "Vendor", "model": MODEL, "created": 1_780_000_000}
    if not asked.get("stream"):
        message = {"role": "assistant", "content": "".join(TEXT), "refusal": None, "reasoning": None}
        choice = {"logprobs": None, "finish_reason": "stop", "native_finish_reason": "stop", "index": 0, "message": message}
        return json_reply(200, headers(), head | {"object": "chat.completion", "choices": [choice], "usage": USAGE})
    head["object"] = "chat.completion.chunk"

    def chunk(content, reason=None, **more):
        choice = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": reason,
                  "native_finish_reason": reason, "logprobs": None}
        return event(head | {"choices": [choice]} | more)
    pieces = [PROCESSING, PROCESSING, *(chunk(part) for part in TEXT[:3]), PROCESSING, *(chunk(part) for part in TEXT[3:]),
              chunk("", "stop"), chunk("", usage=USAGE), event("[DONE]")]
    kind = [("content-type", "text/event-stream"), ("cache-control", "no-cache")]
    return Reply(200, [*kind, *headers()], pieces=pieces, compressed=False)
