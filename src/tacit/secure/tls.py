"""Certificates for nodes that speak to each other: a small authority, and requests to it.

A node makes its own key, which never leaves its folder, and asks the authority to sign it. Nodes accept each other by
the authority's signature alone.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import SettingError

if TYPE_CHECKING:
    from cryptography.x509 import Name

_LIFETIME = datetime.timedelta(days=30)
_SLACK = datetime.timedelta(hours=1)  # clocks differ


class Authority:
    """Signs the certificates of one center's nodes."""

    def __init__(self, name: str = "tacit center") -> None:
        """Make a new authority; its key lives as long as this object."""
        _need_cryptography()
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        now = datetime.datetime.now(datetime.UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SLACK)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding

        return self._certificate.public_bytes(Encoding.PEM)

    def sign(self, request: bytes) -> bytes:
        """The certificate for a node's request, both PEM."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.serialization import Encoding

        asked = x509.load_pem_x509_csr(request)
        if not asked.is_signature_valid:
            raise SettingError("a request for a certificate is not signed with the key that it names")
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(asked.subject)
            .issuer_name(self._name)
            .public_key(asked.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SLACK)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(Encoding.PEM)


def request_certificate(name: str, key_file: Path) -> bytes:
    """Make a key in `key_file`, readable by its owner alone, and return the request for its certificate, PEM."""
    _need_cryptography()
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(pem)
    request = x509.CertificateSigningRequestBuilder().subject_name(_name(name)).sign(key, hashes.SHA256())
    return request.public_bytes(Encoding.PEM)


def _name(text: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise SettingError("certificates need the package cryptography: pip install 'tacit[secure]'") from error
