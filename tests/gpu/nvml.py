"""The card's own counter, read without tokenmeter; and a simulated driver, for the rehearsal."""
import ctypes
import os
import pathlib
import subprocess
import threading
import time

STUB = pathlib.Path(__file__).parent / "../../sidecar/gpu/tests/nvml/stub.c"


class Card:
    """The first card."""

    def __init__(self, library):
        self.library = ctypes.CDLL(str(library))
        self.call("nvmlInit_v2")
        self.handle = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self.handle))

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} answers {code}")

    def joules(self):
        millijoules = ctypes.c_ulonglong()
        self.call("nvmlDeviceGetTotalEnergyConsumption", self.handle, ctypes.byref(millijoules))
        return millijoules.value / 1000


class StandIn:
    """A simulated card of 100 W, and 50 W more for each of up to eight streams."""

    def __init__(self, folder):
        self.folder, self.streams, self.joules = folder, 0, 1000.0
        self.library = folder / "libnvidia-ml.so.1"
        subprocess.run(["cc", "-shared", "-fPIC", f'-DSCENE="{folder}/scene"', "-o", self.library, STUB], check=True)
        self.write(100)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        """Stops writing, so that its folder can be removed."""
        self.stopped.set()
        self.thread.join()

    def run(self):
        before = time.monotonic()
        while not self.stopped.wait(0.02):
            now = time.monotonic()
            watts = 100 + 50 * min(self.streams, 8)
            self.joules += watts * (now - before)
            before = now
            self.write(watts)

    def write(self, watts):
        new = self.folder / "scene.new"
        new.write_text(f"count 1\n0.uuid GPU-stand-in\n0.energy {int(self.joules * 1000)}\n0.power {watts * 1000}\n"
                       f"0.utilization {min(self.streams * 12, 100)}\n")
        os.replace(new, self.folder / "scene")
