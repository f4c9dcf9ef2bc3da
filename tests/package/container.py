"""A container of the image, run by runc as Kubernetes' restricted profile wants it: its own user, a read-only root, no
capability. It shares this machine's network."""
import contextlib
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import threading


class Image:
    """An OCI archive, unpacked into a folder by its manifest."""

    def __init__(self, archive, folder):
        with tarfile.open(archive) as tar:
            def blob(digest):
                return tar.extractfile("./blobs/" + digest.replace(":", "/"))
            (self.entry,) = json.load(tar.extractfile("./index.json"))["manifests"]
            manifest = json.load(blob(self.entry["digest"]))
            self.config = json.load(blob(manifest["config"]["digest"]))
            self.compressed = sum(layer["size"] for layer in manifest["layers"])
            self.root, self.files = pathlib.Path(folder, "rootfs"), []
            for layer in manifest["layers"]:
                with tarfile.open(fileobj=blob(layer["digest"]), mode="r|gz") as files:
                    for one in files:
                        self.files.append(one)
                        files.extract(one, self.root, numeric_owner=True)

    def run(self, *args, **options):
        """Runs a container to its end."""
        with Container(self, args, **options) as container:
            output = container.process.communicate(timeout=60)[0]
            return container.process.returncode, output


class Container:
    """A running container. `mounts` are files and folders of this machine by their paths in it."""

    def __init__(self, image, args, mounts=(), capabilities=(), user=None, network=True, entrypoint=True, env=()):
        self.folder = tempfile.TemporaryDirectory()
        self.name = f"tokenmeter-{os.getpid()}-{os.path.basename(self.folder.name)}"
        here = pathlib.Path(self.folder.name)
        subprocess.run(["runc", "spec"], cwd=here, check=True)
        spec = json.loads((here / "config.json").read_text())
        config = image.config["config"]
        user = config["User"] if user is None else user
        uid, gid = (int(number) for number in user.split(":"))
        state = here / "state"
        state.mkdir()
        os.chown(state, uid, gid)
        self.state = state
        process = spec["process"]
        process.update(terminal=False, user={"uid": uid, "gid": gid}, cwd=config["WorkingDir"],
                       env=config["Env"] + list(env), noNewPrivileges=True,
                       args=(config["Entrypoint"] if entrypoint else []) + list(args or config["Cmd"]))
        process["capabilities"] = {kind: list(capabilities) for kind in ("bounding", "effective", "permitted")}
        spec["root"] = {"path": str(image.root), "readonly": True}
        shared = {"network"} if network else set()
        spec["linux"]["namespaces"] = [one for one in spec["linux"]["namespaces"] if one["type"] not in shared]
        spec["linux"].pop("resources", None)
        bind = {"type": "none", "options": ["rbind", "rw"]}
        mounts = {"/var/lib/tokenmeter": state, **dict(mounts)}
        spec["mounts"] = [one for one in spec["mounts"] if not one["destination"].startswith("/sys")]
        spec["mounts"] += [{"destination": to, "source": str(path), **bind} for to, path in mounts.items()]
        (here / "config.json").write_text(json.dumps(spec))
        self.process = subprocess.Popen(["runc", "--root", here / "run", "run", self.name], cwd=here, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.lines, self.reader = [], None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.signal("KILL")
        self.process.wait()
        if self.reader:
            self.reader.join()
        self.process.stdout.close()
        self.folder.cleanup()

    def signal(self, name):
        with contextlib.suppress(subprocess.CalledProcessError):
            subprocess.run(["runc", "--root", pathlib.Path(self.folder.name, "run"), "kill", self.name, name],
                           check=True, capture_output=True)

    def follow(self):
        """Collects the log from now on."""
        def read():
            self.lines.extend(iter(self.process.stdout.readline, ""))
        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        return self

    def log(self):
        return "".join(self.lines)
