"""The life of the rendered container, without a cluster: the binary starts with its variables, answers its probes, drains
by its hook, lets the server's hook go, and ends."""

import http.server
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import chart


def free_port():
    """Returns a port that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server(http.server.BaseHTTPRequestHandler):
    """A server that answers everything."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments):
        pass


def status(port, path, timeout=5):
    """Returns the status of a request; 0 if there is no answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return 0


def until(port, path, expected):
    """Waits for a status."""
    deadline = time.monotonic() + 60
    while status(port, path) != expected:
        assert time.monotonic() < deadline, f"{path} is not {expected}"
        time.sleep(0.05)


def test_sidecar_lives_as_rendered(tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    admin, public = free_port(), free_port()
    settings = {"admin": f"127.0.0.1:{admin}"}
    sets = [f'sidecar={{"settings":{str(settings).replace(chr(39), chr(34))},"drain":{{"delaySeconds":0}}}}']
    objects = chart.render("1.31", sets=sets)
    text = next(one["data"]["injection.yaml"] for one in objects if "injection.yaml" in one.get("data", {}))
    [config] = chart.documents(text)
    container = config["container"]
    env = {one["name"]: one.get("value", "made") for one in container["env"]}
    env = {name: value.replace("/var/lib/tokenmeter", str(tmp_path)) for name, value in env.items()}
    env["TOKENMETER_LISTEN"] = f"127.0.0.1:{public}"
    env["TOKENMETER_UPSTREAM"] = f"http://127.0.0.1:{server.server_port}"

    def command(words):
        assert words[0] == "/usr/bin/tokenmeter"
        return [chart.BINARY, *words[1:]]

    words = command([*container["command"], *container["args"]])
    with open(tmp_path / "log", "w") as log:
        process = subprocess.Popen(words, env=env, cwd=tmp_path, stdout=log, stderr=log)
    try:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            until(admin, container[probe]["httpGet"]["path"], 200)
        assert status(public, "/health") == 200
        hooks = {}
        # Kubernetes starts both hooks at once; the server's waits for the sidecar's.
        waits = threading.Thread(target=lambda: hooks.update(server=status(admin, "/drained", 60)))
        waits.start()
        drain = subprocess.run(
            command(container["lifecycle"]["preStop"]["exec"]["command"]), env=env, cwd=tmp_path, timeout=60
        )
        waits.join(60)
        assert (drain.returncode, hooks) == (0, {"server": 200}), (tmp_path / "log").read_text()
        assert status(admin, "/livez") == 200 and status(admin, "/readyz") == 503
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        server.shutdown()
    assert (tmp_path / "ledger.db").exists()


def test_redirect_takes_the_arguments_that_the_injection_adds():
    objects = chart.render("1.31", sets=['injection={"redirect":{"enabled":true}}'])
    text = next(one["data"]["injection.yaml"] for one in objects if "injection.yaml" in one.get("data", {}))
    [config] = chart.documents(text)
    words = [*config["redirect"]["command"], *config["redirect"].get("args", []), "--to=8200", "--port=8000"]
    printed = subprocess.run([chart.BINARY, *words[1:], "--print"], capture_output=True, text=True, check=True).stdout
    # The sidecar's own connections are not redirected.
    assert "8200" in printed and str(config["container"]["securityContext"]["runAsUser"]) in printed
