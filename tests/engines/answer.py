"""The content of an answer, independent of its cut into events.

Two answers to the same seeded request are equal here when each choice has the same text, tool
calls and finish reason, and the usage is the same. Ids, times and the way in which tokens fall
into events differ from run to run, as does what the engine found in its cache.
"""
import json
from dataclasses import dataclass, field


@dataclass
class Choice:
    text: str = ""
    reasoning: str = ""
    tools: dict = field(default_factory=dict)
    finish: str = None


@dataclass
class Answer:
    choices: dict = field(default_factory=dict)
    usage: list = field(default_factory=list)
    """(prompt tokens, completion tokens) of each usage object; llama.cpp sends one per choice."""
    done: int = 0
    errors: list = field(default_factory=list)

    def finishes(self):
        return {choice.finish for choice in self.choices.values()}


def events(body):
    """The blocks of an SSE body, each with its blank line; the rest after the last blank line is omitted."""
    return [block + b"\n\n" for block in body.split(b"\n\n")[:-1]]


def payload(event):
    """The data of an event: a JSON value, or the end mark as text."""
    data = b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
    return json.loads(data) if data.startswith(b"{") else data


def read(message):
    """The content of a response."""
    answer = Answer()
    if "text/event-stream" not in (message.header("content-type") or ""):
        add(answer, json.loads(message.content()))
        return answer
    for event in events(message.body):
        value = payload(event)
        if value == b"[DONE]":
            answer.done += 1
        elif isinstance(value, dict):                     # llama.cpp starts several prompts with a null
            add(answer, value)
    answer.usage.sort()
    return answer


def add(answer, value):
    if value.get("error"):
        answer.errors.append(value["error"])
    for part in value.get("choices", ()):
        choice = answer.choices.setdefault(part["index"], Choice())
        said = part.get("delta") or part.get("message") or part
        choice.text += said.get("content") or said.get("text") or ""
        choice.reasoning += said.get("reasoning_content") or said.get("reasoning") or ""
        for at, call in enumerate(said.get("tool_calls") or ()):
            name, arguments = choice.tools.get(call.get("index", at), ("", ""))
            function = call["function"]
            choice.tools[call.get("index", at)] = (name + (function.get("name") or ""), arguments + (function.get("arguments") or ""))
        choice.finish = part.get("finish_reason") or choice.finish
    usage = value.get("usage")
    if usage and usage["total_tokens"]:                   # LiteLLM sends one of zeros without a request for it
        answer.usage.append((usage["prompt_tokens"], usage["completion_tokens"]))


def names(body):
    """The member names of a stream's events, those of choices with a `[]`, and those of events with a finish with a
    `!`."""
    found = set()
    for value in map(payload, events(body)):
        if isinstance(value, dict):
            choices = value.get("choices", ())
            mark = "!" * any(part.get("finish_reason") for part in choices)
            found |= {mark + name for name in value} | {mark + "[]" + name for part in choices for name in part}
    return found


def is_usage_only(event):
    """True if an event has only usage: no choices, or (LiteLLM) an empty one."""
    value = payload(event)
    return isinstance(value, dict) and bool(value.get("usage")) and not any(map(says, value.get("choices", [None])))


def says(choice):
    """True if a choice has more than its index."""
    return choice is None or bool(choice.get("delta")) or not {"index", "delta"} >= set(choice)
