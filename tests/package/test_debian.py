"""The Debian package and the archive, installed on a booted Debian by the blocks of install.md."""
import json
import shutil
import subprocess
import sys
import unittest

from machine import Machine
from release import FOLDER, blocks, eventually, file

UPSTREAM = '''
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"id": "1", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
            "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
'''
CHAT = """curl -fsS http://127.0.0.1:9800/v1/chat/completions -H 'Content-Type: application/json' \
  -d '{"model":"m","messages":[{"role":"user","content":"hi"}]}'"""
SPEND = "tokenmeter spend --ledger /var/lib/tokenmeter/spend.db --format json"
SETTINGS = "/etc/tokenmeter/tokenmeter.yaml"


class DebianTest(unittest.TestCase):
    def boot(self):
        """Boots a machine with the release in /root and an upstream on port 8000."""
        self.machine = self.enterContext(Machine())
        for path in FOLDER.iterdir():
            if not path.name.endswith(".oci.tar"):
                shutil.copy(path, self.machine.root / "root")
        (self.machine.root / "root/upstream.py").write_text(UPSTREAM)
        self.machine.start(sys.executable, "/root/upstream.py")
        return self.machine

    def follow(self, heading, of=slice(None)):
        """Runs the blocks of a section of install.md in the machine."""
        return [self.machine.run(block)[1] for block in blocks(heading)[of]]

    def unit(self, *names):
        shown = self.machine.run("systemctl show tokenmeter " + " ".join(f"-p {name}" for name in names))[1]
        values = dict(line.split("=", 1) for line in shown.splitlines())
        return values[names[0]] if len(names) == 1 else values

    def exchanges(self):
        """Returns the number in the ledger: 0 while a service that has just started has none yet."""
        code, output = self.machine.run(SPEND, check=False)
        return 0 if code else sum(int(row["exchanges"]) for row in json.loads(output)["rows"])

    def test_package_installs_meters_upgrades_and_leaves_the_ledger(self):
        machine = self.boot()
        with self.subTest("nothing is started by the installation"):
            self.follow("Debian package")
            self.assertEqual(self.unit("ActiveState", "UnitFileState"),
                             {"ActiveState": "inactive", "UnitFileState": "disabled"})
            verified = machine.run("systemd-analyze verify --man=no tokenmeter.service")[1]
            self.assertNotIn("tokenmeter", verified)
            machine.run("man -w tokenmeter-run; test -f /usr/share/bash-completion/completions/tokenmeter")
        with self.subTest("the service meters"):
            self.follow("Service")
            machine.run(CHAT)
            eventually(lambda: self.exchanges() >= 1)
            status = machine.run("cat /proc/$(systemctl show -P MainPID tokenmeter)/status")[1]
            status = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            self.assertNotIn("0", status["Uid"].split(), "root")
            self.assertEqual((int(status["CapBnd"], 16), status["NoNewPrivs"], status["Seccomp"]), (0, "1", "2"))
            self.assertEqual(machine.run("stat -L -c %a /var/lib/tokenmeter")[1].strip(), "750")
            exposure = machine.run("systemd-analyze security tokenmeter --threshold=20 --no-pager | tail -1")[1]
            self.assertIn("OK", exposure)
        with self.subTest("a reload is no restart"):
            before = self.unit("MainPID")
            machine.run("systemctl reload tokenmeter")
            self.assertEqual((self.unit("MainPID"), self.unit("ActiveState")), (before, "active"))
        with self.subTest("an upgrade restarts a running service, and keeps its settings and rows"):
            machine.run(f"echo '# mine' >> {SETTINGS}")
            machine.run("dpkg -i /root/tokenmeter_*.deb")
            self.assertNotEqual(self.unit("MainPID"), before)
            self.assertEqual(self.unit("ActiveState"), "active")
            machine.run(f"grep -q '# mine' {SETTINGS}")
            eventually(lambda: machine.run(CHAT, check=False)[0] == 0)
            eventually(lambda: self.exchanges() >= 2)
        with self.subTest("a command of root leaves a ledger that the service can write"):
            self.follow("Upgrading and downgrading")
            machine.run("tokenmeter ledger verify --ledger /var/lib/tokenmeter/spend.db")
            machine.run("systemctl stop tokenmeter")
            self.assertEqual(self.unit("Result", "ExecMainStatus"), {"Result": "success", "ExecMainStatus": "0"})
            machine.run("tokenmeter ledger verify --ledger /var/lib/tokenmeter/spend.db; systemctl start tokenmeter")
            eventually(lambda: machine.run(CHAT, check=False)[0] == 0)
            eventually(lambda: self.exchanges() >= 3)
        with self.subTest("invalid settings end the service"):
            machine.run(f"sed -i 's/^upstream: .*/upstream: nowhere/' {SETTINGS}")
            machine.run("systemctl restart tokenmeter", check=False)
            eventually(lambda: self.unit("ActiveState") == "failed")
            self.assertEqual(self.unit("ExecMainStatus", "NRestarts"), {"ExecMainStatus": "2", "NRestarts": "0"})
        with self.subTest("removal stops the service and leaves the settings and the ledger, purge the ledger"):
            machine.run(f"sed -i 's|^upstream: .*|upstream: http://127.0.0.1:8000|' {SETTINGS}")
            machine.run("systemctl start tokenmeter")
            machine.run("pidof tokenmeter; dpkg --remove tokenmeter; ! pidof tokenmeter")
            machine.run(f"test -f {SETTINGS}; test ! -e /usr/bin/tokenmeter")
            self.follow("Removing", slice(1))
            machine.run(f"test ! -e {SETTINGS}; test ! -e /usr/lib/systemd/system/tokenmeter.service")
            machine.run("test -f /var/lib/private/tokenmeter/spend.db; test -d /var/lib/tokenmeter")

    def test_archive_installs_and_is_removed(self):
        machine = self.boot()
        self.follow("Release archive")
        self.follow("Manual and completions")
        self.follow("Service")
        machine.run(CHAT)
        eventually(lambda: self.exchanges() >= 1)
        self.follow("Removing", slice(1, 2))
        left = machine.run("find /usr/local /etc/systemd -name '*tokenmeter*'")[1]
        self.assertEqual(left, "")
        machine.run(f"test -f {SETTINGS}; test -f /var/lib/private/tokenmeter/spend.db")

    def test_package_has_no_fault_that_lintian_knows(self):
        # A package of the project, not of Debian: no Debian changelog.
        done = subprocess.run(["lintian", "--fail-on", "error", "--suppress-tags", "no-changelog",
                               file("tokenmeter_*.deb")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
