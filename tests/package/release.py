"""The files of a release, and what the tests of all of them share."""
import os
import pathlib
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(os.environ["TOKENMETER_PACKAGE"])
TOOLS = pathlib.Path(os.environ.get("TOKENMETER_PACKAGE_TOOLS", pathlib.Path.home() / ".cache/tokenmeter/package"))


def file(pattern):
    """Returns the one file of the release whose name matches."""
    (path,) = FOLDER.glob(pattern)
    return path


def blocks(heading):
    """Returns the shell blocks of a section of install.md: what the page says is what the tests run."""
    section = (ROOT / "sidecar/tokenmeter/install.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = [block.split("```")[0] for block in section.split("```sh\n")[1:]]
    assert found, f"{heading} has no block"
    return found


def eventually(condition, seconds=30):
    """Returns the first true result of the condition."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.05)
    return result


def fetch(url):
    """Returns the status and the text of a page; (0, …) if there is none."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)
