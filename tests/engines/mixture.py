"""Random requests of every kind that an engine supports. The same seed gives the same requests."""
import cases
from case import Case

DIALECTS_READY = True
"""True once tokenmeter counts the tokens of the endpoints in `others`."""
TEXTS = ["the people of", "Tell me about the world.", "Ünïcödé — 世界 \"quoted\" \\ and \u2028 more", "👩‍👩‍👧 😀 नमस्ते", "a\tb\nc",
         "the people of the world " * 60]
STOPS = ["world", " the", "ing", "e of", "😀"]
MESSAGES, RESPONSES, NATIVE, INFILL = "/v1/messages", "/v1/responses", "/completion", "/infill"


PLAIN = {"litellm": [MESSAGES, RESPONSES], "transformers": [RESPONSES]}
"""Engines that get only requests that all of them support, and the other dialects of each."""


class Mixture:
    """Generates the requests for one engine."""

    def __init__(self, engine, random):
        self.engine, self.random, self.number = engine.name, random, 0

    def cases(self, count, choices):
        """Requests whose tokens the engine reports in full, each with this number of choices for each prompt."""
        return [self.draw(choices) for _ in range(count)]

    def draw(self, choices):
        if self.engine in PLAIN:
            return self.random.choice([self.plain, self.plain, self.other])(choices)
        kinds = [self.chat] * 4 + [self.completion] * 4
        if choices == 1:
            kinds += [self.native] * 2 if self.engine == "llamacpp" else []
            kinds += [self.other] * 2 if DIALECTS_READY else []
        return self.random.choice(kinds)(choices)

    def chat(self, choices):
        random, fields = self.random, self.common(choices)
        fields["messages"] = [{"role": "user", "content": random.choice(TEXTS)}]
        if random.random() < 0.3:
            fields["messages"].insert(0, {"role": "system", "content": random.choice(TEXTS)})
        if random.random() < 0.15:
            fields |= {"tools": [cases.TOOL]}
        elif random.random() < 0.1 and choices == 1:
            fields |= cases.TOOL_CALL[self.engine]
        elif random.random() < 0.15:
            fields |= {"logprobs": True, "top_logprobs": random.randint(0, 3)}
        return self.case(cases.CHAT, fields)

    def completion(self, choices):
        random, fields = self.random, self.common(choices)
        fields["prompt"] = self.prompt(several=self.engine == "vllm" or fields.get("stream") and choices == 1)
        if random.random() < 0.15:
            fields["logprobs"] = random.randint(0, 3)
        elif random.random() < 0.15:
            fields["echo"] = True
            if self.engine == "vllm" and random.random() < 0.3:
                fields["max_tokens"] = 0                  # the engine counts a token that is not sent
        if random.random() < 0.1:
            fields["best_of"] = choices + random.randint(0, 1)
        return self.case(cases.COMPLETIONS, fields)

    def native(self, _):
        """llama.cpp's own endpoints; each answer has its own count, streamed or not."""
        random = self.random
        fields = {"n_predict": random.randint(1, 40), "seed": random.randint(0, 1 << 20), "stream": random.random() < 0.6}
        if random.random() < 0.2:
            return self.case(INFILL, fields | {"input_prefix": random.choice(TEXTS), "input_suffix": random.choice(TEXTS)})
        if random.random() < 0.3:
            fields["stop"] = random.sample(STOPS, 2)
        if random.random() < 0.2:
            fields["n_probs"] = 2
        return self.case(NATIVE, fields | {"prompt": self.prompt(several=True)})

    def plain(self, choices):
        """Requests that every engine supports."""
        fields = self.common(choices)
        if self.random.random() < 0.5:
            return self.case(cases.COMPLETIONS, fields | {"prompt": self.random.choice(TEXTS)})
        return self.case(cases.CHAT, fields | {"messages": [{"role": "user", "content": self.random.choice(TEXTS)}]})

    def other(self, _):
        """Endpoints of other dialects."""
        having = PLAIN.get(self.engine, [MESSAGES, RESPONSES])
        return {MESSAGES: self.messages, RESPONSES: self.responses}[self.random.choice(having)]()

    def messages(self):
        random = self.random
        fields = {"model": "tiny", "max_tokens": random.randint(1, 40), "stream": random.random() < 0.6,
                  "messages": [{"role": "user", "content": random.choice(TEXTS)}]}
        if random.random() < 0.3:
            fields["system"] = random.choice(TEXTS)
        if random.random() < 0.3:
            fields["stop_sequences"] = random.sample(STOPS, 2)
        return self.case(MESSAGES, fields)

    def responses(self):
        random = self.random
        return self.case(RESPONSES, {"model": "tiny", "max_output_tokens": random.randint(1, 40), "stream": random.random() < 0.6,
                                     "input": random.choice(TEXTS)})

    def uncovered(self):
        """llama.cpp, also behind LiteLLM: answers whose usage covers one choice of several."""
        random = self.random
        fields = self.common(random.randint(2, 3)) | {"stream": False}
        fields.pop("stream_options", None)
        if random.random() < 0.4:
            return self.case(cases.COMPLETIONS, fields | {"n": 1, "prompt": random.sample(TEXTS[:5], 2)})
        if random.random() < 0.5:
            return self.case(cases.COMPLETIONS, fields | {"prompt": random.choice(TEXTS)})
        return self.case(cases.CHAT, fields | {"messages": [{"role": "user", "content": random.choice(TEXTS)}]})

    def beams(self):
        """vLLM: a search that generates more, or less, than it returns."""
        random = self.random
        n = random.randint(1, 3)
        return self.case(cases.COMPLETIONS, {"model": "tiny", "prompt": random.choice(TEXTS), "max_tokens": random.randint(2, 8),
                                             "use_beam_search": True, "n": n, "temperature": 0})

    def long(self, streamed):
        """More work than any test waits for."""
        fields = {"seed": self.random.randint(0, 1 << 20), **cases.SLOW[self.engine], **(self.stream() if streamed else {})}
        if self.random.random() < 0.5:
            return self.case(cases.COMPLETIONS, {"model": "tiny", "prompt": self.random.choice(TEXTS[:5])} | fields)
        return self.case(cases.CHAT, {"model": "tiny", "messages": cases.ASK} | fields)

    def common(self, choices):
        random = self.random
        fields = {"model": "tiny", "max_tokens": random.randint(1, 40), "seed": random.randint(0, 1 << 20),
                  "temperature": random.choice([0, 0.7, 1] if choices == 1 else [0.7, 1])}   # vLLM rejects n > 1 at 0
        if choices > 1:
            fields["n"] = choices
        if random.random() < 0.3:
            fields["stop"] = random.sample(STOPS, random.randint(1, 3))
        # llama.cpp's unstreamed answers report one choice only
        if random.random() < 0.7 or self.engine == "llamacpp" and choices > 1:
            fields |= self.stream()
        return fields

    def stream(self):
        """A stream, with or without a request for usage."""
        options = self.random.choice([{}, {}, {"stream_options": None}, {"stream_options": {}},
                                      {"stream_options": {"include_usage": False}}, {"stream_options": {"include_usage": True}},
                                      {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}])
        return {"stream": True, **options}

    def prompt(self, several):
        random = self.random
        ids = [random.randint(5, 600) for _ in range(random.randint(1, 30))]
        kinds = [random.choice(TEXTS)] * 4 + [ids]
        if several:
            kinds += [random.sample(TEXTS, 2), random.sample(TEXTS, 3), [ids, ids[::-1]]]
        return random.choice(kinds)

    def case(self, path, fields):
        self.number += 1
        return Case(f"mixed-{self.number}", path, fields=fields, indent=self.random.choice([None, None, None, 1]))
