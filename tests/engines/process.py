"""Processes of the tests: free ports, waiting by polling, stopping by process id."""
import contextlib
import os
import pathlib
import random
import signal
import socket
import subprocess
import time


WAIT_SECONDS = 60
"""Maximum seconds for what takes no time on an idle machine."""


def free_port():
    """A port without a socket at this moment. It lies below the range from which connections get theirs, so that no
    connection has it when the server listens there, which can be minutes later."""
    end = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, end) if end > 20_000 else 0
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return s.getsockname()[1]


def eventually(probe, seconds=WAIT_SECONDS, every=0.05):
    """Poll until probe() is true. Returns its value, or the last untrue one on timeout."""
    deadline = time.monotonic() + seconds
    while True:
        value = probe()
        left = deadline - time.monotonic()
        if value or left <= 0:
            return value
        time.sleep(min(every, left))


class Process:
    """A child process with its output in a file."""

    def __init__(self, command, log, environment=None):
        self.command, self.log = [str(part) for part in command], pathlib.Path(log)
        with self.log.open("ab") as out:
            self.child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})

    def alive(self):
        return self.child.poll() is None

    def wants_processor(self):
        """True if one of its threads runs or waits for a processor."""
        for thread in pathlib.Path(f"/proc/{self.child.pid}/task").iterdir():
            with contextlib.suppress(OSError):            # the thread has ended
                if (thread / "stat").read_text().rsplit(")", 1)[1].split()[0] == "R":
                    return True
        return False

    def wait_until(self, ready, seconds):
        """Wait for ready(); an OSError in it means not yet."""
        def probe():
            if not self.alive():
                raise RuntimeError(f"ended with {self.child.returncode}: {self.describe()}")
            with contextlib.suppress(OSError):
                return ready()
        if not eventually(probe, seconds, every=0.1):
            self.stop()
            raise RuntimeError(f"not ready after {seconds} s: {self.describe()}")

    def stop(self):
        """SIGTERM, wait, SIGKILL; the same for remaining children."""
        family = self.descendants()
        if self.alive():
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(15)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        end_all(family)

    def kill(self):
        """kill -9."""
        family = self.descendants()
        self.child.kill()
        self.child.wait()
        end_all(family)

    def descendants(self):
        """(pid, start time) of each descendant process; the start time detects a reused pid."""
        parents = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = status_of(entry.name)
        family, found = {self.child.pid}, []
        while True:
            more = {pid for pid, (parent, _) in parents.items() if parent in family} - family
            if not more:
                return found
            family |= more
            found += [(pid, parents[pid][1]) for pid in more]

    def describe(self):
        tail = self.log.read_text(errors="replace")[-3000:]
        return f"{' '.join(self.command)}\n--- end of {self.log}:\n{tail}"


def status_of(pid):
    """(parent, start time) of a process."""
    fields = fields_of(pid)
    return int(fields[1]), int(fields[19])


def fields_of(pid):
    """The fields of /proc/PID/stat after the name, which may contain spaces."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def end_all(family):
    for pid, started in family:
        with contextlib.suppress(OSError):
            if status_of(pid)[1] == started:
                os.kill(pid, signal.SIGKILL)
