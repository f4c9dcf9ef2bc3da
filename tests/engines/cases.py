"""The requests for every engine, and those for one engine only."""
from case import Case

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
STREAM = {"stream": True}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
ASK = [{"role": "user", "content": "Tell me about the world."}]
LONG = [{"role": "user", "content": "the people of the world " * 200}]
STOP = {"max_tokens": 400, "stop": ["world", " the", "e of", "ing"]}
TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather in a city",
    "parameters": {"type": "object", "required": ["city", "unit"], "properties": {
        "city": {"type": "string", "maxLength": 12}, "unit": {"type": "string", "enum": ["c", "f"]}}}}}
TOOL_CALL = {
    # with "required", a random model in llama.cpp starts no call, so the prompt starts it
    "llamacpp": {"messages": [*ASK, {"role": "assistant", "content": "<tool_call>\n"}], "max_tokens": 300,
                 "tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
    "vllm": {"max_tokens": 300, "tools": [TOOL],
             "tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
}
SLOW = {
    # several seconds of work, for a stream that is left or cut in the middle
    "llamacpp": {"max_tokens": 3500, "ignore_eos": True, "grammar": "root ::= (([0-9]{1,40} | [0-9a-f]{1,40}) )+"},
    "vllm": {"max_tokens": 3500, "ignore_eos": True},
    "transformers": {"max_tokens": 1500},
}
EMOJI = {
    # characters of several tokens each, most of which send no event
    "llamacpp": {"max_tokens": 200, "grammar": "root ::= [😀-🙏]{16}"},
    "vllm": {"max_tokens": 200, "structured_outputs": {"regex": "[😀-🙏]{16}"}},
}
NOT_TAKEN = {"transformers": {"n", "ignore_eos", "grammar", "logprobs", "echo", "tools"}, "mistralrs": {"grammar", "tools"}}
"""Fields that an engine rejects or ignores: it gets no case with one of them."""
for facts in (TOOL_CALL, SLOW, EMOJI):
    facts["litellm"] = facts["llamacpp"]                  # it forwards the fields that its server accepts
for facts in (TOOL_CALL, EMOJI):
    facts["transformers"] = facts["mistralrs"] = facts["llamacpp"]   # which they do not accept


def taken(engine, cases):
    """The cases that the engine supports."""
    left_out = NOT_TAKEN.get(engine, set())
    cases = [case for case in cases if not left_out & set(case.fields)]
    if engine == "transformers":
        return [case for case in cases if not isinstance(case.fields.get("prompt"), list)]
    if engine == "litellm":                               # it mixes up the choices of a stream, and loses the ends of all but one
        return [case for case in cases if not (case.streamed and (case.choices > 1 or case.several_prompts))]
    return cases


def chat(name, *fields, **facts):
    body = {"model": "tiny", "messages": ASK, "max_tokens": 24, "seed": 7}
    for more in fields:
        body |= more
    return Case(name, CHAT, fields=body, **facts)


def completion(name, *fields, **facts):
    body = {"model": "tiny", "prompt": "the people of", "max_tokens": 24, "seed": 7}
    for more in fields:
        body |= more
    return Case(name, COMPLETIONS, fields=body, **facts)


def slow(engine, *fields):
    return chat("slow", SLOW[engine], *fields)


def answered(engine):
    """Cases that succeed and generate."""
    tool = TOOL_CALL[engine]
    # transformers samples nothing: a word of its only answer
    text_stop = {**STOP, "stop": ["words"]} if engine == "transformers" else STOP
    # llama.cpp's unstreamed answer reports the tokens of one choice only
    all_choices = engine not in ("llamacpp", "litellm")
    return taken(engine, [
        chat("chat"),
        chat("chat-stream", STREAM),
        chat("chat-stream-usage", USAGE),
        chat("chat-n2", {"n": 2}, usage_covers_all=all_choices),
        chat("chat-stream-n2", USAGE, {"n": 2}),
        chat("chat-stream-n2-no-usage", STREAM, {"n": 2}),
        chat("chat-tool", tool),
        chat("chat-stream-tool", USAGE, tool),
        chat("chat-tool-offered", {"tools": [TOOL]}),
        chat("chat-stop", STOP),
        chat("chat-stream-stop", USAGE, STOP),
        chat("chat-stream-long", USAGE, {"max_tokens": 1000, "ignore_eos": True}),
        chat("chat-stream-long-no-usage", STREAM, {"max_tokens": 1000, "ignore_eos": True}),
        chat("chat-prompt-first", {"messages": LONG}),
        chat("chat-prompt-cached", {"messages": LONG}),
        chat("chat-stream-prompt-cached", USAGE, {"messages": LONG}),
        completion("completion"),
        completion("completion-stream", STREAM),
        completion("completion-stream-usage", USAGE),
        completion("completion-n2", {"n": 2}, usage_covers_all=all_choices),
        completion("completion-stream-n2", USAGE, {"n": 2}),
        completion("completion-stop", text_stop, {"seed": 8}),
        completion("completion-stream-stop", USAGE, text_stop, {"seed": 8}),
    ])


def usage(engine):
    """Streams in which usage can be requested, with every way in which a client may request it."""
    def options(**flags):
        return {"stream": True, "stream_options": flags}
    at_end, running = "include_usage", "continuous_usage_stats"
    tool = TOOL_CALL[engine]
    return taken(engine, [
        chat("ask-chat", STREAM),
        chat("ask-chat-n3", STREAM, {"n": 3}),
        chat("ask-chat-tool", STREAM, tool),
        chat("ask-chat-stop", STREAM, STOP),
        chat("ask-chat-emoji", STREAM, EMOJI[engine]),
        chat("ask-chat-unicode", STREAM, {"messages": [{"role": "user", "content": "Ünï\t\"{},:\\ 世界 👩‍👩‍👧 \u2028"}]}),
        chat("ask-chat-logprobs", STREAM, {"logprobs": True, "top_logprobs": 2}),
        chat("ask-chat-max-1", STREAM, {"max_tokens": 1}),
        chat("ask-chat-laid-out", STREAM, indent=2),
        chat("ask-chat-null", STREAM, {"stream_options": None}),
        chat("ask-chat-empty", options()),
        chat("ask-chat-empty-laid-out", options(), indent=1),
        chat("ask-chat-false", options(**{at_end: False})),
        chat("ask-chat-both-false", options(**{running: False, at_end: False})),
        chat("ask-chat-running-null", options(**{running: None})),
        chat("ask-chat-itself", options(**{at_end: True})),
        chat("ask-chat-itself-n3", options(**{at_end: True, running: False}), {"n": 3}),
        chat("ask-chat-itself-both", options(**{at_end: True, running: True})),
        chat("ask-chat-running-alone", options(**{running: True})),
        completion("ask-completion", STREAM),
        completion("ask-completion-n3", STREAM, {"n": 3}),
        completion("ask-completion-stop", STREAM, STOP, {"seed": 8}),
        completion("ask-completion-emoji", STREAM, EMOJI[engine]),
        completion("ask-completion-logprobs", STREAM, {"logprobs": 2}),
        completion("ask-completion-max-1", STREAM, {"max_tokens": 1}),
        completion("ask-completion-echo", STREAM, {"echo": True}),
        completion("ask-completion-prompts", STREAM, {"prompt": ["the people of", "the world"]}),
        completion("ask-completion-ids", STREAM, {"prompt": [5, 6, 7, 300]}),
        completion("ask-completion-null", STREAM, {"stream_options": None}),
        completion("ask-completion-false", options(**{at_end: False})),
        completion("ask-completion-itself", options(**{at_end: True})),
        completion("ask-completion-itself-both", options(**{at_end: True, running: True})),
    ])


def refused(engine):
    """Cases that the engine answers with an error."""
    # transformers fails on unreadable requests
    unreadable, wrong_type = {"transformers": (422, 500), "mistralrs": (400, 422)}.get(engine, (400, 400))
    no_prompt = {"litellm": 500, "mistralrs": 422}.get(engine, 400)
    no_model = {"vllm": 404, "mistralrs": 500}.get(engine, 400)
    cases = [
        Case("bad-json", CHAT, raw=b'{"messages": [', error=unreadable),
        chat("bad-type", {"max_tokens": "many"}, error=wrong_type),
        chat("bad-type-stream", STREAM, {"max_tokens": "many"}, error=wrong_type),
        completion("no-prompt", {"prompt": None}, error=no_prompt),
    ]
    if engine == "transformers":
        cases.append(chat("unknown-field-stream", STREAM, {"no_such_field": 1}, error=422))
    if engine != "llamacpp":                              # which answers for any model name
        cases.append(chat("unknown-model", {"model": "no-such-model"}, error=no_model))
    return cases


def passed(engine):
    """Cases that are not metered."""
    return [
        Case("unknown-path", "/v1/nope", fields={"x": 1}, error=404, passthrough=True),
        Case("models", "/v1/models", "GET", passthrough=True),
        Case("engine-metrics", "/metrics", "GET", error=None if engine in ("llamacpp", "vllm") else 404, passthrough=True),
    ]


def every(engine):
    return [*answered(engine), *refused(engine), *passed(engine)]
