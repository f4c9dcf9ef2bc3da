"""The whole Dockerfile, the compiler's stage included. Its base image is a stand-in, made from Debian's mirror and
rustup as the real one is, so that the test needs no registry."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from container import Image
from release import ROOT

BASE = next(line.split()[1] for line in (ROOT / "helm/Dockerfile").read_text().splitlines()
            if line.startswith("FROM rust:"))
TOOLCHAIN = BASE.split(":")[1].split("-")[0]
SUITE = BASE.rsplit("-", 1)[1]
# The certificates are this machine's: its network may have an authority of its own.
STAND_IN = f"""
FROM scratch
ADD root.tar /
COPY ca-certificates.crt /etc/ssl/certs/
ENV RUSTUP_HOME=/usr/local/rustup CARGO_HOME=/usr/local/cargo PATH=/usr/local/cargo/bin:/usr/sbin:/usr/bin:/sbin:/bin
COPY rustup-init /
RUN /rustup-init -y --no-modify-path --profile minimal --default-toolchain {TOOLCHAIN} && rm /rustup-init
"""


class DockerfileTest(unittest.TestCase):
    def test_compiler_stage_makes_an_image_that_runs(self):
        work = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        base = work / "base"
        base.mkdir()
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates,gcc,libc6-dev", SUITE,
                        base / "root.tar"], check=True)
        subprocess.run(["curl", "-fsSLo", base / "rustup-init",
                        f"https://static.rust-lang.org/rustup/dist/{os.uname().machine}-unknown-linux-gnu/rustup-init"],
                       check=True)
        (base / "rustup-init").chmod(0o755)
        (base / "ca-certificates.crt").write_bytes(pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_bytes())
        (base / "Dockerfile").write_text(STAND_IN)
        store = ["--storage-driver", "overlay", "--root", work / "store", "--runroot", work / "run"]
        build = ["build", "--quiet", "--isolation", "chroot", "--network", "host", "--pull=never"]

        def buildah(*args):
            subprocess.run(["buildah", *store, *args], check=True)
        buildah(*build, "--tag", f"docker.io/library/{BASE}", base)
        self.addCleanup(buildah, "rmi", "--all", "--force")
        # The last stage, which needs all others.
        archive = work / "redirect.tar"
        buildah(*build, "--file", ROOT / "helm/Dockerfile", "--target", "redirect", "--build-arg", "VERSION=0",
                "--build-arg", "COMMIT=0", "--tag", "redirect", ROOT)
        buildah("push", "--quiet", "redirect", f"oci-archive:{archive}:redirect")
        image = Image(archive, work / "image")
        for program, name in ("/usr/bin/tokenmeter", "tokenmeter"), ("/usr/sbin/nft", "nftables"):
            code, output = image.run(program, "--version", entrypoint=False)
            self.assertEqual((code, output.split()[:1]), (0, [name]), output)
        self.assertTrue((image.root / "usr/share/doc/tokenmeter/licenses/crates.txt.gz").is_file())


if __name__ == "__main__":
    unittest.main()
