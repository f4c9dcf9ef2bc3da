"""The rate limits in a provider's response heads are gauges by upstream, model and quota."""
import time

import pytest

import anthropic_fake
import azure_fake
import calls
import openai_fake

LIMIT, REMAINING = "tokenmeter_rate_limit", "tokenmeter_rate_limit_remaining"
RESET, RETRY_AFTER = "tokenmeter_rate_limit_reset_timestamp_seconds", "tokenmeter_retry_after_seconds"


def quotas(place, name, model):
    return place.proxy.samples().values(name, "quota", model=model)


@pytest.mark.parametrize("place", ["openai"], indirect=True)
def test_openai(place):
    calls.openai_chat(place.proxy.url)
    now = time.time()
    assert quotas(place, LIMIT, openai_fake.MODEL) == {"requests": 500, "tokens": 150_000}
    assert quotas(place, REMAINING, openai_fake.MODEL) == {"requests": 499, "tokens": 149_984}
    resets = quotas(place, RESET, openai_fake.MODEL)
    assert abs(resets["tokens"] - now - 360) < 30 and abs(resets["requests"] - now) < 30
    place.fake.fail(429)
    assert calls.openai_chat(place.proxy.url).error
    assert quotas(place, REMAINING, openai_fake.MODEL)["tokens"] == 0
    assert place.proxy.samples().sum(RETRY_AFTER, model=openai_fake.MODEL) == 1


@pytest.mark.parametrize("place", ["anthropic"], indirect=True)
def test_anthropic(place):
    calls.anthropic_message(place.proxy.url, stream=True)
    now = time.time()
    model = anthropic_fake.MODEL
    assert quotas(place, LIMIT, model) == {"requests": 50, "tokens": 48_000, "input_tokens": 40_000, "output_tokens": 8_000}
    assert quotas(place, REMAINING, model)["input_tokens"] == 39_000
    resets = quotas(place, RESET, model)
    assert len(resets) == 4 and all(abs(reset - now - anthropic_fake.RESET_S) < 30 for reset in resets.values())


@pytest.mark.parametrize("place", ["azure_openai"], indirect=True)
def test_azure(place):
    calls.azure_chat(place.proxy.url)
    assert quotas(place, REMAINING, azure_fake.DEPLOYMENT) == {"requests": 59, "tokens": 9_960}


@pytest.mark.parametrize("place", ["gemini"], indirect=True)
def test_provider_without_rate_limits(place):
    calls.gemini(place.proxy.url)
    assert not place.proxy.samples().has(REMAINING)
