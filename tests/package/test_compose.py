"""The example for Docker Compose: valid, and its arguments are ones that the binary accepts."""
import json
import subprocess
import tempfile
import unittest

from container import Image
from release import ROOT, TOOLS, file

EXAMPLE = ROOT / "examples/compose.yaml"


class ComposeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = [TOOLS / "docker-compose", "-f", EXAMPLE, "config", "--format", "json"]
        cls.project = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        cls.meter = cls.project["services"]["tokenmeter"]
        cls.image = Image(file("*-tokenmeter.oci.tar"), cls.enterClassContext(tempfile.TemporaryDirectory()))

    def test_binary_accepts_the_command(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        prices = f"{folder}/prices.yaml"
        with open(prices, "w") as written:
            written.write(self.project["configs"]["prices"]["content"])
        (mount,) = self.meter["configs"]
        command, *flags = self.meter["command"]
        self.assertEqual(command, "run")
        code, output = self.image.run("check-config", *flags, mounts={mount["target"]: prices})
        self.assertEqual((code, "warning" in output), (0, False), output)

    def test_image_is_the_released_one(self):
        self.assertEqual(self.meter["image"], self.image.entry["annotations"]["org.opencontainers.image.ref.name"])

    def test_clients_reach_the_meter_only(self):
        self.assertNotIn("ports", self.project["services"]["server"])
        addresses = [flag for flag in self.meter["command"] if flag.startswith(("--listen=", "--admin="))]
        listening = {address.rsplit(":", 1)[1] for address in addresses}
        self.assertEqual({str(port["target"]) for port in self.meter["ports"]}, listening)

    def test_container_is_confined_and_has_time_to_drain(self):
        self.assertTrue(self.meter["read_only"])
        self.assertEqual(self.meter["cap_drop"], ["ALL"])
        self.assertEqual(self.meter["stop_grace_period"], "1m0s")


if __name__ == "__main__":
    unittest.main()
