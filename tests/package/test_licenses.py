"""The licence texts of what the binary contains, in the archive, the Debian package and the images."""
import gzip
import io
import pathlib
import re
import subprocess
import tarfile
import tempfile
import tomllib
import unittest

from container import Image
from release import ROOT, file

LICENSES = ROOT / "sidecar/tokenmeter/package/licenses"
NAMES = {"crates.txt.gz", "rust-standard-library.html.gz"}
INSTALLED = "usr/share/doc/tokenmeter/licenses"


class LicensesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tarfile.open(file("tokenmeter-*-linux.tar.gz")) as tar:
            cls.files = {pathlib.Path(one.name).name: tar.extractfile(one).read()
                         for one in tar if one.isfile() and "/licenses/" in one.name}
        cls.notices, *parts = gzip.decompress(cls.files["crates.txt.gz"]).decode().split("\n" + "=" * 80 + "\n")
        cls.sections = list(zip(parts[::2], parts[1::2], strict=True))

    def test_every_crate_of_the_binary_has_a_text(self):
        tree = subprocess.run(["cargo", "tree", "--locked", "-p", "tokenmeter", "--no-default-features", "--features",
                               "dist", "--edges", "normal", "--prefix", "none", "--format", "{p}"],
                              cwd=ROOT, capture_output=True, text=True, check=True).stdout
        # A path in the line: a crate of this repository.
        crates = {tuple(line.split()[:2]) for line in tree.splitlines() if line and "(/" not in line}
        self.assertGreater(len(crates), 100)
        found = set()
        for head, text in self.sections:
            self.assertGreater(len(text.split()), 50, head)
            found |= {(name, "v" + version) for name, version in re.findall(r"(?m)^  (\S+) (\S+)$", head)}
        self.assertEqual(crates - found, set())

    def test_text_without_a_holder_has_its_notice_at_the_begin(self):
        for head, text in self.sections:
            if re.search("<(year|owner|copyright holders)>", text):
                for name in re.findall(r"(?m)^  (\S+) \S+$", head):
                    self.assertRegex(self.notices, rf"(?m)^  .*\b{name}\b.*: Copyright")

    def test_terms_of_c_code_and_tables_are_included(self):
        texts = "\n".join(text for _, text in self.sections)
        for holder in "Meta Platforms", "Unicode, Inc.", "BoringSSL":
            self.assertIn(holder, texts)
        self.assertIn(b"The Rust Standard Library", gzip.decompress(self.files["rust-standard-library.html.gz"]))

    def test_package_and_images_have_the_same_files(self):
        self.assertEqual(set(self.files), NAMES)
        package = subprocess.run(["dpkg-deb", "--fsys-tarfile", file("tokenmeter_*.deb")], capture_output=True,
                                 check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(package)) as tar:
            for name, content in self.files.items():
                self.assertEqual(tar.extractfile(f"./{INSTALLED}/{name}").read(), content)
        for kind in "tokenmeter", "redirect":
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                image = Image(file(f"*-{kind}.oci.tar"), folder)
                for name, content in self.files.items():
                    self.assertEqual((image.root / INSTALLED / name).read_bytes(), content)

    def test_accepted_licences_are_those_of_the_supply_chain_rules(self):
        accepted = tomllib.loads((LICENSES / "about.toml").read_text())["accepted"]
        allowed = tomllib.loads((ROOT / ".deny.toml").read_text())["licenses"]["allow"]
        self.assertEqual(sorted(accepted), sorted(allowed))


if __name__ == "__main__":
    unittest.main()
