"""Another project's proxy behind tokenmeter. The requests that it forwards of a stream show how it reads the stream."""
import asyncio
import contextlib
import pathlib
import socket
import subprocess
import tempfile
import threading
import time

import rig

SETTINGS = {
    "haproxy": """
defaults
  mode http
  timeout client 5s
  timeout connect 5s
  timeout server 5s
frontend all
  bind 127.0.0.1:{port}
  default_backend server
backend server
  server server 127.0.0.1:{upstream}
""",
    "nginx": """
daemon off;
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{upstream};
      proxy_http_version 1.1;
    }}
  }}
}}
""",
}
"""The settings of each, as in its documentation."""

COMMANDS = {
    "haproxy": "haproxy -db -f {folder}/settings",
    "nginx": "nginx -p {folder} -c {folder}/settings",
}

SILENCE_S = 0.1
"""A stream ends after this time without a byte of a response."""


class NextHop:
    """A running proxy, as a function of a stream of requests."""

    def __init__(self, port, recorder):
        self.port, self.recorder = port, recorder

    def __call__(self, data):
        answers = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=SILENCE_S) as connection:
            with contextlib.suppress(TimeoutError, ConnectionError):
                connection.sendall(data)
                while piece := connection.recv(1 << 16):
                    answers += piece
        return self.recorder.take(), any(f"HTTP/1.1 {digit}".encode() in answers for digit in (4, 5))


@contextlib.contextmanager
def running(name):
    """A proxy before a server that records."""
    recorder, loop = rig.Recorder(requests_per_connection=None), asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(recorder.serve, "127.0.0.1", 0))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    port, = rig.free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        values = {"port": port, "upstream": server.sockets[0].getsockname()[1], "folder": folder}
        (pathlib.Path(folder) / "settings").write_text(SETTINGS[name].format(**values))
        process = subprocess.Popen(COMMANDS[name].format(**values).split())
        try:
            deadline = time.monotonic() + 10
            while not is_open(port):
                assert process.poll() is None and time.monotonic() < deadline, f"{name} does not start"
                time.sleep(0.05)
            yield NextHop(port, recorder)
        finally:
            process.terminate()
            process.wait(10)
            loop.call_soon_threadsafe(loop.stop)


def is_open(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
