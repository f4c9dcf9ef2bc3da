"""The official OpenAI client reads the same answer through tokenmeter and directly."""
import openai
import pytest

import cases
from tap import CASE
from test_abort import EVENTS, Watch

CASES = cases.answered
CREATE = {cases.CHAT: lambda client: client.chat.completions, cases.COMPLETIONS: lambda client: client.completions}
ITS_OWN = {"ignore_eos", "grammar"}
"""Fields that the client does not support; it sends them as extra fields."""


def client_of(address):
    return openai.OpenAI(base_url="http://%s:%d/v1" % address, api_key="none", max_retries=0, timeout=120)


def create(address, case, **more):
    fields = {k: v for k, v in case.fields.items() if k not in ITS_OWN}
    extra = {k: v for k, v in case.fields.items() if k in ITS_OWN}
    return CREATE[case.path](client_of(address)).create(**fields, extra_body=extra, **more)


def heard(address, case):
    """(choices, usage) in the client's own objects."""
    result = create(address, case)
    choices, usage = {}, []
    for part in result if case.streamed else [result]:
        for choice in part.choices:
            told = choices.setdefault(choice.index, {"text": "", "tools": "", "finish": None})
            said = getattr(choice, "delta", None) or getattr(choice, "message", None)
            told["text"] += (said.content if said else choice.text) or ""
            for tool in (said and said.tool_calls) or ():
                told["tools"] += (tool.function.name or "") + (tool.function.arguments or "")
            told["finish"] = choice.finish_reason or told["finish"]
        if part.usage and part.usage.total_tokens:        # LiteLLM sends one of zeros without a request for it
            usage.append((part.usage.prompt_tokens, part.usage.completion_tokens))
    return choices, sorted(usage)


def test_answer_equals_a_direct_one(rig, case):
    direct = heard(rig.engine.address, case)
    assert heard(rig.address, case) == direct
    assert len(direct[0]) == case.choices


@pytest.mark.parametrize("name", ["bad-type", "bad-type-stream"])
def test_raises_the_same_error(rig, name):
    case = next(case for case in cases.refused(rig.engine.name) if case.name == name)
    told = []
    for address in (rig.engine.address, rig.address):
        with pytest.raises(openai.APIStatusError) as raised:
            create(address, case)
        told.append((raised.value.status_code, raised.value.body))
    assert told[0] == told[1]
    assert told[0][0] == case.error


def test_unknown_path_is_not_found(rig):
    with pytest.raises(openai.NotFoundError):
        client_of(rig.address).post("/nope", body={"x": 1}, cast_to=object)


def test_lists_the_models(rig):
    direct, through = ([model.id for model in client_of(address).models.list()] for address in (rig.engine.address, rig.address))
    assert through == direct == list(rig.engine.models)


def test_closing_a_stream_stops_the_engine(rig):
    case = cases.slow(rig.engine.name, cases.STREAM)
    name = rig.new_name(case)
    watch = Watch(rig)
    with create(rig.address, case, extra_headers={CASE: name}) as stream:
        for number, _ in enumerate(stream):
            if number == EVENTS:
                break
    watch.expect_upstream_left(name)
    watch.expect_engine_free(case)
    watch.expect_stopped_short(case)
    watch.expect_client_abort()
