"""A client and a server of chat completions with TLS by Python's standard library, one version of TLS each.

    tls_peer.py serve VERSION CERTIFICATE KEY   prints its port, and streams 40 tokens to each request
    tls_peer.py ask VERSION CA PORT             sends three requests on one connection, and prints what arrived
"""

import http.client
import http.server
import json
import ssl
import sys

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
TOKENS = 40


def limited(context, version):
    context.minimum_version = context.maximum_version = VERSIONS[version]
    return context


class Chat(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(TOKENS):
            self.event(json.dumps({"model": "m", "choices": [{"index": 0, "delta": {"content": "word "}}]}))
        usage = {"prompt_tokens": 7, "completion_tokens": TOKENS}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self.event(json.dumps({"model": "m", "choices": [end], "usage": usage}))
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, data):
        chunk = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.flush()

    def log_message(self, *_):
        pass


def serve(version, certificate, key):
    context = limited(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), version)
    context.load_cert_chain(certificate, key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print("port", server.server_port, flush=True)
    server.serve_forever()


def ask(version, ca, port):
    context = limited(ssl.create_default_context(cafile=ca), version)
    client = http.client.HTTPSConnection("127.0.0.1", int(port), context=context, timeout=20)
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    for answers in range(1, 4):
        client.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        text = client.getresponse().read().decode()
        assert text.count("word ") == TOKENS and text.endswith("data: [DONE]\n\n"), text
    print(f"{client.sock.version()}: {answers} answers of {TOKENS} tokens")


if __name__ == "__main__":
    {"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:])
