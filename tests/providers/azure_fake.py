"""Azure OpenAI: deployments with an api-version, and `/openai/v1`. The shapes are OpenAI's, with content filters.

Sources: `AzureOpenAI` of PyPI's `openai`, and Microsoft's documents on content streaming, quotas and errors.
"""
import json
import re

import openai_fake
from fake import event, json_reply
from words import fresh

HOST = "tests.openai.azure.com"
CODINGS = ["gzip"]
DEPLOYMENT = "chat-prod"
NEW, OLD = "2025-04-01-preview", "2023-05-15"
"""API versions with and without `stream_options`."""
FILTERED = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")}
ERRORS = {
    400: {"message": "The response was filtered due to the prompt triggering the content management policy.",
          "type": None, "param": "prompt", "code": "content_filter", "status": 400,
          "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": FILTERED}},
    401: {"code": "401", "message": "Access denied due to invalid subscription key or wrong API endpoint."},
    404: {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."},
    429: {"code": "429", "message": "Requests have exceeded the token rate limit of your tier. Please retry after 1 second."},
    500: {"code": "InternalServerError", "message": "Backend returned unexpected response."},
}
BROKEN = openai_fake.BROKEN


def headers(remaining=9_960):
    return [
        ("apim-request-id", fresh("apim-")), ("azureml-model-session", "d020-20260801"), ("x-ms-region", "Switzerland North"),
        ("x-ms-client-request-id", "Not-Set"), ("x-ms-deployment-name", DEPLOYMENT), ("x-ms-rai-invoked", "true"),
        ("x-request-id", fresh("")), ("x-content-type-options", "nosniff"), ("cmp-upstream-response-duration", "212"),
        ("strict-transport-security", "max-age=31536000; includeSubDomains; preload"),
        ("x-ratelimit-limit-requests", "60"), ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-limit-tokens", "10000"), ("x-ratelimit-remaining-tokens", str(remaining)),
    ]


def failure(status):
    more = [("retry-after", "1"), ("retry-after-ms", "20"), ("x-ratelimit-reset-requests", "1")] if status == 429 else []
    return json_reply(status, headers(0 if status == 429 else 9_960) + more, {"error": ERRORS[status]})


def answer(request):
    deployed = re.fullmatch(r"/openai/deployments/([^/]+)(/.+)", request.path)
    if deployed and deployed[1] != DEPLOYMENT:
        return failure(404)
    if not deployed and not request.path.startswith("/openai/v1/"):
        return json_reply(404, headers(), {"error": {"code": "404", "message": "Resource not found"}})
    asked = request.json
    if deployed and request.query["api-version"] == OLD and "stream_options" in asked:
        message = "Unrecognized request argument supplied: stream_options"
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return json_reply(400, headers(), {"error": error})
    reply = openai_fake.answer(request)
    reply.headers = [("content-type", reply.headers[0][1]), *headers()]
    if request.path.endswith("/chat/completions") and reply.status == 200:
        filtered(reply)
    return reply


def filtered(reply):
    """Adds the results of the content filter; a stream begins with those of its prompt."""
    prompt = {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": FILTERED}]}
    if not reply.pieces:
        value = json.loads(reply.body) | prompt
        value["choices"][0]["content_filter_results"] = FILTERED
        reply.body = json.dumps(value, separators=(",", ":")).encode()
        return
    head = {"choices": [], "created": 0, "id": "", "model": "", "object": ""}
    reply.pieces = [event(head | prompt), *map(with_filter, reply.pieces)]


def with_filter(piece):
    data = piece.removeprefix(b"data: ").strip()
    if data == b"[DONE]":
        return piece
    value = json.loads(data)
    value.pop("obfuscation", None)
    for choice in value["choices"]:
        choice["content_filter_results"] = FILTERED if choice["delta"].get("content") else {}
    return event(value)
