"""A private certificate authority and a server certificate, made for one test run."""
import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """`ca`, `chain` and `key` are PEM files in a folder; the certificate is valid for `names` and 127.0.0.1."""

    def __init__(self, folder, names):
        self.ca, self.chain, self.key = folder / "ca.pem", folder / "chain.pem", folder / "key.pem"
        root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        root_name = name_of("Provider tests CA")
        root = builder(root_name, root_name, root_key).add_extension(x509.BasicConstraints(True, 0), critical=True)
        root = root.add_extension(key_usage(signs_certificates=True), critical=True).sign(root_key, hashes.SHA256())
        alternatives = [*map(x509.DNSName, names), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        leaf = builder(name_of(names[0]), root_name, key)
        for extension, critical in [
            (x509.BasicConstraints(False, None), True),
            (key_usage(signs_certificates=False), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
            (x509.SubjectAlternativeName(alternatives), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), False),
        ]:
            leaf = leaf.add_extension(extension, critical=critical)
        leaf = leaf.sign(root_key, hashes.SHA256())
        self.ca.write_bytes(root.public_bytes(serialization.Encoding.PEM))
        self.chain.write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
        self.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                               serialization.NoEncryption()))


def name_of(common):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def builder(subject, issuer, key):
    now = datetime.datetime.now(datetime.timezone.utc)
    return x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), now - DAY, now + DAY)


def key_usage(signs_certificates):
    return x509.KeyUsage(digital_signature=True, content_commitment=False, key_encipherment=False,
                         data_encipherment=False, key_agreement=False, key_cert_sign=signs_certificates,
                         crl_sign=signs_certificates, encipher_only=False, decipher_only=False)
