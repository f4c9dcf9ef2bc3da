"""A streaming chat server with a decoder of random weights. Its text is meaningless; its work is real:
every stream takes a step of attention over its own cache and of the matrices, and streams that are there
at once take it together, as a server does.

usage: server.py PORT [cuda|cpu|none]     none: no torch, a step is a pause
"""
import json
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LAYERS, WIDTH, HEADS, WORDS, LONGEST = 24, 4096, 32, 32_000, 2048


class Pause:
    """Replaces the model if torch is missing."""

    def step(self, streams):
        time.sleep(0.01)
        for stream in streams:
            stream["length"] += 1
            stream["word"] = stream["length"]


class Decoder:
    def __init__(self, device):
        import torch
        self.torch, self.device = torch, device
        small = device == "cpu"
        self.layers, self.width = (2, 256) if small else (LAYERS, WIDTH)
        self.kind = torch.float32 if small else torch.bfloat16
        torch.manual_seed(1)

        def matrix(rows, columns):
            return torch.randn(rows, columns, device=device, dtype=self.kind) / rows ** 0.5

        width = self.width
        self.words = matrix(WORDS, width)
        self.blocks = [(matrix(width, 3 * width), matrix(width, width), matrix(width, 4 * width), matrix(4 * width, width))
                       for _ in range(self.layers)]

    def step(self, streams):
        torch = self.torch
        with torch.inference_mode():
            ids = torch.tensor([stream.get("word", 1) % WORDS for stream in streams], device=self.device)
            x = self.words[ids]
            for number, (qkv, out, up, down) in enumerate(self.blocks):
                query, key, value = (self.norm(x) @ qkv).chunk(3, dim=-1)
                seen = []
                for row, stream in enumerate(streams):
                    keys, values = self.cache(stream, number)
                    keys[:, stream["length"]] = key[row].view(HEADS, -1)
                    values[:, stream["length"]] = value[row].view(HEADS, -1)
                    until = stream["length"] + 1
                    attention = torch.nn.functional.scaled_dot_product_attention(
                        query[row].view(HEADS, 1, -1), keys[:, :until], values[:, :until])
                    seen.append(attention.reshape(-1))
                x = x + torch.stack(seen) @ out
                x = x + torch.nn.functional.silu(self.norm(x) @ up) @ down
            picked = (self.norm(x) @ self.words.T).argmax(-1).tolist()
        for stream, word in zip(streams, picked):
            stream["word"], stream["length"] = word, stream["length"] + 1

    def norm(self, x):
        return self.torch.nn.functional.layer_norm(x, (self.width,))

    def cache(self, stream, number):
        caches = stream.setdefault("caches", {})
        if number not in caches:
            shape = (2, HEADS, LONGEST, self.width // HEADS)
            caches[number] = self.torch.zeros(shape, device=self.device, dtype=self.kind)
        return caches[number]


class Batch:
    """All active streams take each step together."""

    def __init__(self, model):
        self.model, self.joined, self.streams = model, queue.Queue(), []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            while not self.joined.empty() or not self.streams:
                self.streams.append(self.joined.get())
            self.model.step(self.streams)
            for stream in self.streams:
                stream["out"].put(stream["word"] if stream["length"] <= stream["most"] else None)
            self.streams = [stream for stream in self.streams if stream["length"] <= stream["most"]]

    def words(self, most):
        stream = {"most": min(most, LONGEST - 1), "length": 0, "out": queue.Queue()}
        self.joined.put(stream)
        return iter(stream["out"].get, None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.whole({"object": "list", "data": [{"id": "random", "object": "model", "owned_by": "tests"}]})

    def whole(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        count = 0
        for word in self.server.batch.words(int(asked.get("max_tokens", 100))):
            count += 1
            self.frame({"choices": [{"index": 0, "delta": {"content": f" {word}"}, "finish_reason": None}]})
        self.frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        if (asked.get("stream_options") or {}).get("include_usage"):
            usage = {"prompt_tokens": 1, "completion_tokens": count, "total_tokens": count + 1}
            self.frame({"choices": [], "usage": usage})
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def frame(self, more):
        frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "random", **more}
        self.chunk(b"data: " + json.dumps(frame).encode() + b"\n\n")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def main():
    device = sys.argv[2] if len(sys.argv) > 2 else "cuda"
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.batch = Batch(Pause() if device == "none" else Decoder(device))
    server.serve_forever()


if __name__ == "__main__":
    main()
