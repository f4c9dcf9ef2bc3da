#!/usr/bin/env python3
"""Makes keys.json (a JWKS) and tokens.json: tokens signed, and forged, by another implementation.

The private keys are discarded. Run it in this folder only to add a case: everything
changes then. Needs Python's `cryptography`.
"""
import base64, hashlib, hmac, json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

b64 = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()
number = lambda value, size: b64(value.to_bytes(size, "big"))
compact = lambda value: b64(json.dumps(value, separators=(",", ":")).encode())

RSA = rsa.generate_private_key(65537, 2048)
OTHER = rsa.generate_private_key(65537, 2048)
P256, P384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()
HASH = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


def sign(algorithm, key, message):
    digest = HASH.get(algorithm[2:])
    if algorithm[:2] == "RS":
        return key.sign(message, padding.PKCS1v15(), digest)
    if algorithm[:2] == "PS":
        return key.sign(message, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    if algorithm[:2] == "ES":
        size = int(algorithm[2:]) // 8
        r, s = decode_dss_signature(key.sign(message, ec.ECDSA(digest)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")
    return key.sign(message)


CLAIMS = {"iss": "https://id.example", "aud": ["tokenmeter"], "exp": 2_000_000_000, "nbf": 1_700_000_000,
          "sub": "ann", "tenant": "acme", "realm": {"tenant": {"id": "deep"}, "number": 42},
          "https://example.com/tenant": "spaced"}


def token(algorithm, key, head=None, claims=None, signed_as=None):
    head = {"alg": algorithm, "typ": "JWT", "kid": KID[algorithm[:2]] if algorithm[:2] in KID else "rsa"} | (head or {})
    head = {name: value for name, value in head.items() if value is not None}
    claims = {name: value for name, value in (CLAIMS | (claims or {})).items() if value is not None}
    message = f"{compact(head)}.{compact(claims)}"
    return f"{message}.{b64(sign(signed_as or algorithm, key, message.encode()))}"


KID = {"RS": "rsa", "PS": "rsa", "ES": "p256", "Ed": "ed"}
pub = RSA.public_key().public_numbers()
x = lambda key, size: {"x": number(key.public_key().public_numbers().x, size), "y": number(key.public_key().public_numbers().y, size)}
KEYS = {"keys": [
    {"kty": "oct", "kid": "secret", "k": b64(b"a shared secret, published by mistake"), "alg": "HS256"},
    {"kty": "RSA", "kid": "enc", "use": "enc", "n": number(pub.n, 256), "e": number(pub.e, 3)},
    {"kty": "RSA", "kid": "rsa", "use": "sig", "n": number(pub.n, 256), "e": number(pub.e, 3)},
    {"kty": "EC", "crv": "P-256", "kid": "p256", "alg": "ES256", **x(P256, 32)},
    {"kty": "EC", "crv": "P-384", "kid": "p384", "key_ops": ["verify"], **x(P384, 48)},
    {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": b64(ED.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))},
    {"kty": "OKP", "crv": "X25519", "kid": "x", "x": b64(bytes(32))},
]}
PEM = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def by_secret(secret, kid="rsa"):
    message = f"{compact({'alg': 'HS256', 'typ': 'JWT', 'kid': kid})}.{compact(CLAIMS)}"
    return f"{message}.{b64(hmac.new(secret, message.encode(), hashlib.sha256).digest())}"


good = {name: token(name, RSA) for name in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]}
good |= {"ES256": token("ES256", P256), "ES384": token("ES384", P384, {"kid": "p384"}), "EdDSA": token("EdDSA", ED),
         "no kid": token("RS256", RSA, {"kid": None}), "audience as text": token("EdDSA", ED, claims={"aud": "tokenmeter"}),
         "one of several audiences": token("EdDSA", ED, claims={"aud": ["other", "tokenmeter"]}),
         "no nbf": token("EdDSA", ED, claims={"nbf": None}), "exp with a fraction": token("EdDSA", ED, claims={"exp": 2e9 + 0.5})}
rs = good["RS256"]
message, signature = rs.rsplit(".", 1)
unsigned = f"{compact({'alg': 'none', 'typ': 'JWT'})}.{compact(CLAIMS)}"
forged = f"{message.split('.')[0]}.{compact(CLAIMS | {'tenant': 'rival'})}.{signature}"
der = P256.sign(good["ES256"].rsplit(".", 1)[0].encode(), ec.ECDSA(hashes.SHA256()))
own = OTHER.public_key().public_numbers()
own_jwk = {"kty": "RSA", "n": number(own.n, 256), "e": number(own.e, 3)}
bad = {
    "alg none": f"{unsigned}.", "alg none with a signature": f"{unsigned}.{signature}",
    "alg None in capitals": f"{compact({'alg': 'NONE', 'kid': 'rsa'})}.{compact(CLAIMS)}.",
    "HS256 with the PEM of the public key": by_secret(PEM),
    "HS256 with the modulus": by_secret(pub.n.to_bytes(256, "big")),
    "HS256 with the secret of the set": by_secret(b"a shared secret, published by mistake", "secret"),
    "another key under our id": token("RS256", OTHER), "another key and no id": token("RS256", OTHER, {"kid": None}),
    "its own key inside": token("RS256", OTHER, {"jwk": own_jwk, "kid": None}),
    "an address of keys": token("RS256", OTHER, {"jku": "https://evil.example/keys", "kid": "evil"}),
    "an unknown id": token("RS256", RSA, {"kid": "gone"}),
    "the key for encryption": token("RS256", RSA, {"kid": "enc"}),
    "an id that is no text": token("RS256", RSA, {"kid": 7}),
    "an id of another kind of key": token("RS256", RSA, {"kid": "p256"}),
    "PS256 signed as RS256": token("PS256", RSA, signed_as="RS256"),
    "RS256 signed as RS512": token("RS256", RSA, signed_as="RS512"),
    "ES256 in DER": good["ES256"].rsplit(".", 1)[0] + "." + b64(der),
    "ES256 of zeros": good["ES256"].rsplit(".", 1)[0] + "." + b64(bytes(64)),
    "ES256 of nothing": good["ES256"].rsplit(".", 1)[0] + ".",
    "critical header": token("RS256", RSA, {"crit": ["b64"], "b64": True}),
    "other claims": forged, "a shortened signature": rs[:-4], "padding": rs + "==", "a fourth part": rs + ".x",
    "a space in it": f"{message}. {signature}", "no payload": f"{message.split('.')[0]}..{signature}",
    "claims that are a list": (lambda m: f"{m}.{b64(sign('EdDSA', ED, m.encode()))}")(f"{compact({'alg': 'EdDSA', 'kid': 'ed'})}.{compact([1])}"),
    "another issuer": token("EdDSA", ED, claims={"iss": "https://evil.example"}),
    "the issuer with a slash": token("EdDSA", ED, claims={"iss": "https://id.example/"}),
    "no issuer": token("EdDSA", ED, claims={"iss": None}),
    "another audience": token("EdDSA", ED, claims={"aud": "other"}), "no audience": token("EdDSA", ED, claims={"aud": None}),
    "no exp": token("EdDSA", ED, claims={"exp": None}), "exp as text": token("EdDSA", ED, claims={"exp": "2000000000"}),
    "exp below zero": token("EdDSA", ED, claims={"exp": -1}), "exp beyond all": token("EdDSA", ED, claims={"exp": 1e300}),
    "expired": token("EdDSA", ED, claims={"exp": 1_750_000_000}),
    "not yet": token("EdDSA", ED, claims={"nbf": 1_900_000_000}),
    "no tenant": token("EdDSA", ED, claims={"tenant": None}), "an empty tenant": token("EdDSA", ED, claims={"tenant": " "}),
    "a tenant with a line end": token("EdDSA", ED, claims={"tenant": "a\nb"}),
    "two tenants": token("EdDSA", ED, claims={"tenant": ["a", "b"]}), "a tenant that is a fraction": token("EdDSA", ED, claims={"tenant": 1.5}),
}
rows = [{"name": n, "good": True, "token": t} for n, t in good.items()] + [{"name": n, "good": False, "token": t} for n, t in bad.items()]
json.dump(KEYS, open("keys.json", "w"), indent=1)
open("keys.json", "a").write("\n")
open("tokens.json", "w").write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
