"""The result of one call as its client received it, in the client's own objects, and its usage as token types."""
from dataclasses import dataclass, field


@dataclass
class Seen:
    text: str = ""
    thought: str = ""
    tools: str = ""
    finish: str = ""
    model: str = ""
    tokens: dict = field(default_factory=dict)
    """Token type -> count, without zeros; empty if the client got no usage."""
    error: tuple = ()
    """(status, name of the exception, message)."""
    extras: dict = field(default_factory=dict)


def counts(**types):
    return {kind: count for kind, count in types.items() if count}


def chat_tokens(usage):
    if usage is None:
        return {}
    prompt, answer = usage.prompt_tokens_details, usage.completion_tokens_details
    cached, written = prompt.cached_tokens or 0, getattr(prompt, "cache_write_tokens", None) or 0
    thought = answer.reasoning_tokens or 0
    return counts(input=usage.prompt_tokens - cached - written, input_cached=cached, input_cache_write=written,
                  output=usage.completion_tokens - thought, output_reasoning=thought)


def response_tokens(usage):
    cached, written = usage.input_tokens_details.cached_tokens, usage.input_tokens_details.cache_write_tokens
    thought = usage.output_tokens_details.reasoning_tokens
    return counts(input=usage.input_tokens - cached - written, input_cached=cached, input_cache_write=written,
                  output=usage.output_tokens - thought, output_reasoning=thought)


def message_tokens(usage):
    thought = usage.output_tokens_details.thinking_tokens if usage.output_tokens_details else 0
    return counts(input=usage.input_tokens, input_cached=usage.cache_read_input_tokens,
                  input_cache_write=usage.cache_creation_input_tokens, output=usage.output_tokens - thought,
                  output_reasoning=thought)


def gemini_tokens(usage):
    cached = usage.cached_content_token_count or 0
    return counts(input=usage.prompt_token_count - cached, input_cached=cached,
                  output=usage.candidates_token_count or 0, output_reasoning=usage.thoughts_token_count or 0)


def interaction_tokens(usage):
    return counts(input=usage.total_input_tokens - usage.total_cached_tokens, input_cached=usage.total_cached_tokens,
                  output=usage.total_output_tokens, output_reasoning=usage.total_thought_tokens)


def chat_tokens_of(provider):
    """The usage that a fake counts for a client that did not ask for it."""
    usage = provider.CHAT if hasattr(provider, "CHAT") else provider.openai_fake.CHAT
    prompt, answer = usage["prompt_tokens_details"], usage["completion_tokens_details"]
    cached, written, thought = prompt["cached_tokens"], prompt["cache_write_tokens"], answer["reasoning_tokens"]
    return counts(input=usage["prompt_tokens"] - cached - written, input_cached=cached, input_cache_write=written,
                  output=usage["completion_tokens"] - thought, output_reasoning=thought)
