"""A Debian that boots systemd in namespaces, on a copy of this machine's file system of which no change remains."""
import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile

from release import eventually

TARGET = "[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n"


class Machine:
    """A booted machine: `run` executes a script in it as root. It has a loopback network of its own."""

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            upper, self.root = folder / "upper", folder / "root"
            upper.mkdir()
            self.root.mkdir()

            def mount(*command):
                subprocess.run(["mount", "-t", *command], check=True)
                stack.callback(subprocess.run, ["umount", "-R", command[-1]], check=True)
            mount("tmpfs", "tmpfs", upper)
            (upper / "changes").mkdir()
            (upper / "work").mkdir()
            mount("overlay", "overlay", "-o", f"lowerdir=/,upperdir={upper}/changes,workdir={upper}/work", self.root)
            # Images of build machines have it, so that packages start nothing.
            (self.root / "usr/sbin/policy-rc.d").unlink(missing_ok=True)
            # A target without the services of this machine.
            (self.root / "etc/systemd/system/package-test.target").write_text(TARGET)
            with contextlib.suppress(FileNotFoundError):
                (self.root / "etc/machine-id").unlink()
            (self.root / "etc/machine-id").touch()
            self.log = stack.enter_context(open(folder / "console", "w+b"))
            process = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--link-journal=no",
                 "--machine=tokenmeter-package", f"--directory={self.root}", "--boot",
                 "systemd.unit=package-test.target"],
                stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
            stack.callback(self.stop, process)
            self.process = process
            self.pid = eventually(self.first_process)
            eventually(lambda: self.run("systemctl is-active package-test.target", check=False)[0] == 0, 60)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def first_process(self):
        """Returns the id of the machine's systemd: the descendant that is process 1 of its own namespace."""
        assert self.process.poll() is None, self.console()
        waiting = [self.process.pid]
        while waiting:
            one = waiting.pop()
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{one}/comm").read_text() == "systemd\n":
                    return one
                children = pathlib.Path(f"/proc/{one}/task/{one}/children").read_text()
                waiting += [int(child) for child in children.split()]
        return None

    def console(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(errors="replace")[-4000:]

    @staticmethod
    def stop(process):
        process.send_signal(signal.SIGTERM)  # powers the machine off
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def run(self, script, check=True, folder="/root"):
        """Runs a bash script; returns its exit code and output. With `check` it must succeed."""
        command = ["nsenter", f"--target={self.pid}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
                   "--root", f"--wdns={folder}", "bash", "-euo", "pipefail", "-c", script]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8"}
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180,
                              stdin=subprocess.DEVNULL, env=environment)
        if check and done.returncode:
            raise AssertionError(f"exit code {done.returncode} of:\n{script}\n{done.stdout}")
        return done.returncode, done.stdout

    def start(self, *command):
        """Starts a program in the machine, which ends with it."""
        return self.run("systemd-run --quiet --unit=stand-in " + " ".join(command))
