"""The archive: its content, the manual, the completions, the bill of materials."""
import hashlib
import json
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

from release import FOLDER, ROOT, file

SETTINGS = ("--upstream", "--listen", "--ledger", "--prices", "--drain-grace-ms")
COMMANDS = {"run", "check-config", "curve", "spend", "tenants", "prices", "ledger", "demo", "top"}


class ArchiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.archive = file("tokenmeter-*-linux.tar.gz")
        cls.name = cls.archive.name.removesuffix(".tar.gz")
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        with tarfile.open(cls.archive) as tar:
            cls.members = tar.getmembers()
            tar.extractall(folder)
        cls.folder = pathlib.Path(folder, cls.name)
        cls.binary = cls.folder / "bin/tokenmeter"

    def test_content_is_complete_and_belongs_to_root(self):
        names = {str(pathlib.Path(one.name).relative_to(self.name)) for one in self.members if one.isfile()}
        pages = {name for name in names if name.startswith("man/")}
        self.assertEqual(names - pages, {
            "bin/tokenmeter", "completions/tokenmeter", "completions/_tokenmeter", "completions/tokenmeter.fish",
            "licenses/crates.txt.gz", "licenses/rust-standard-library.html.gz",
            "LICENSE", "CHANGELOG.md", "tokenmeter.service", "tokenmeter.yaml", f"{self.name}.cdx.json"})
        expected = {"man/tokenmeter.1.gz", *(f"man/tokenmeter-{command}.1.gz" for command in COMMANDS)}
        self.assertLessEqual(expected, pages)
        self.assertEqual({(one.uid, one.gid, one.mode & 0o7022) for one in self.members}, {(0, 0, 0)})
        self.assertEqual(len({one.mtime for one in self.members}), 1, "the commit's time")

    def test_binary_runs_on_glibc_of_2021_and_needs_no_other_library(self):
        symbols = subprocess.run(["objdump", "-T", self.binary], capture_output=True, text=True, check=True).stdout
        needed = {tuple(int(part) for part in word[7:-1].split(".")) for word in symbols.split()
                  if word.startswith("(GLIBC_2")}
        self.assertLessEqual(max(needed), (2, 34))
        dynamic = subprocess.run(["objdump", "-p", self.binary], capture_output=True, text=True, check=True).stdout
        libraries = {line.split()[1] for line in dynamic.splitlines() if "NEEDED" in line}
        self.assertLessEqual({name for name in libraries if not name.startswith("ld-linux")},
                             {"libc.so.6", "libm.so.6", "libgcc_s.so.1"})

    def test_checksums_are_of_every_file(self):
        lines = dict(reversed(line.split()) for line in (FOLDER / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(set(lines), {path.name for path in FOLDER.iterdir()} - {"SHA256SUMS"})
        for name, digest in lines.items():
            self.assertEqual(hashlib.sha256((FOLDER / name).read_bytes()).hexdigest(), digest, name)

    def test_bill_of_materials_has_crates_of_the_binary_only(self):
        bill = json.loads((self.folder / f"{self.name}.cdx.json").read_text())
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        self.assertEqual(bill["metadata"]["component"]["name"], "tokenmeter")
        names = {component["name"] for component in bill["components"]}
        self.assertLessEqual({"tokenmeter-relay", "tokenmeter-simulator", "hyper", "rusqlite", "tokenizers"}, names)
        self.assertEqual(names & {"rcgen", "proptest", "tokenmeter-tests", "windows-sys"}, set())
        unlicensed = [one["name"] for one in bill["components"] if not one.get("licenses")]
        self.assertEqual(unlicensed, [])
        self.assertNotIn("/tmp/", json.dumps(bill))

    def test_manual_pages_render(self):
        for page in sorted((self.folder / "man").glob("*.1.gz")):
            lint = subprocess.run(["mandoc", "-T", "lint", "-W", "error", page], capture_output=True, text=True)
            self.assertEqual((lint.returncode, lint.stdout), (0, ""), page.name)
        text = subprocess.run(["man", "-l", self.folder / "man/tokenmeter-run.1.gz"], capture_output=True, text=True,
                              check=True, env={"MANWIDTH": "100", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"})
        self.assertEqual(text.stderr, "")
        for flag in SETTINGS:
            self.assertIn(flag, text.stdout)
        self.assertIn("TOKENMETER_UPSTREAM", text.stdout)

    def test_completions_load_in_their_shells(self):
        completions = self.folder / "completions"
        for shell, script in ("bash", "tokenmeter"), ("zsh", "_tokenmeter"), ("fish", "tokenmeter.fish"):
            subprocess.run([shell, "-n", completions / script], check=True)
        proposed = self.complete("tokenmeter", "")
        self.assertLessEqual(COMMANDS, proposed)
        self.assertLessEqual(set(SETTINGS), self.complete("tokenmeter", "run", "--"))
        self.assertEqual(self.complete("tokenmeter", "ledger", "ba"), {"backup"})
        fish = f"source {completions}/tokenmeter.fish; complete -C 'tokenmeter ledger ba'"
        said = subprocess.run(["fish", "--no-config", "-c", fish], capture_output=True, text=True, check=True).stdout
        self.assertIn("backup", said)

    def complete(self, *words):
        """Returns what bash proposes for the last word."""
        script = """
            source "$1"; shift
            complete -p tokenmeter > /dev/null
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            function=$(complete -p tokenmeter | sed 's/.*-F \\([^ ]*\\).*/\\1/')
            "$function" tokenmeter "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
        """
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", self.folder / "completions/tokenmeter", *words],
                              capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    def test_settings_file_is_valid(self):
        command = [self.binary, "check-config", "--config", self.folder / "tokenmeter.yaml"]
        # The ledger's folder is made by systemd.
        settings = (self.folder / "tokenmeter.yaml").read_text().replace("/var/lib/tokenmeter", str(self.folder))
        (self.folder / "settings.yaml").write_text(settings)
        command[-1] = self.folder / "settings.yaml"
        done = subprocess.run(command, capture_output=True, text=True, env={})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_unit_waits_longer_than_the_drain(self):
        self.assertEqual((self.folder / "tokenmeter.service").read_text(),
                         (ROOT / "sidecar/tokenmeter/package/tokenmeter.service").read_text())
        unit = dict(line.split("=", 1) for line in (self.folder / "tokenmeter.service").read_text().splitlines()
                    if "=" in line and not line.startswith("#"))
        command = [self.binary, "check-config", "--upstream=http://127.0.0.1:1", "--show-origin"]
        effective = subprocess.run(command, capture_output=True, text=True, check=True, env={}).stdout
        def ms(key):
            (line,) = [line for line in effective.splitlines() if line.startswith(f"{key}:")]
            return int(line.split()[1])
        # The ends of the parts: operations.md, "Stopping".
        drain = (ms("drain_delay_ms") + ms("drain_grace_ms")) / 1000
        self.assertGreater(int(unit["TimeoutStopSec"]), drain + 2 + 4 * 5)


if __name__ == "__main__":
    unittest.main()
