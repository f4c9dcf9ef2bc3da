"""HTTPS servers in place of a webhook, or beside it: each answers reviews by a function of its test."""

import base64
import http.server
import json
import ssl
import threading

from cluster import run
from release import HOOKS

ANY_POD = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]


def certificate(folder, name):
    """Makes a certificate for the loopback address, which is its own CA, and returns its file and its key's."""
    paths = folder / f"{name}.crt", folder / f"{name}.key"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    run(*words, "-addext", "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1])
    return paths


def allow(request, patch=None):
    """Returns the review that admits the pod, with a patch if one is given."""
    response = {"uid": request["uid"], "allowed": True}
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


class StandIn:
    """A server of reviews. `answer` takes the review and returns status and body; it may wait for `stopping`."""

    def __init__(self, answer, files, port=0):
        self.answer, self.stopping = answer, threading.Event()
        self.reviews = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler(self))
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server.server_port}/"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()


def handler(stand_in):
    """Returns the class that answers the requests of a stand-in."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """One connection; it closes after its answer, so that none outlives its server."""

        def do_POST(self):
            review = json.loads(self.rfile.read(int(self.headers["content-length"])))
            stand_in.reviews.append(review)
            status, body = stand_in.answer(review)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    return Handler


class Registration:
    """A MutatingWebhookConfiguration that names a stand-in, for the length of a `with`."""

    def __init__(self, cluster, name, stand_in, ca, selector, rules=ANY_POD):
        self.cluster, self.name = cluster, name
        bundle = base64.b64encode(ca.read_bytes()).decode()
        hook = {
            "name": f"{name}.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "rules": rules,
            "namespaceSelector": {"matchLabels": selector},
            "clientConfig": {"url": stand_in.url, "caBundle": bundle},
        }
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
        self.object = {**kind, "metadata": {"name": name}, "webhooks": [hook]}

    def __enter__(self):
        self.cluster.ask("POST", HOOKS, self.object)

    def __exit__(self, *error):
        self.cluster.ask("DELETE", f"{HOOKS}/{self.name}")
