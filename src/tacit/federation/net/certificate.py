"""The federation's own certificate authority, and the server's certificate: made at the coordinator's.

Members trust this authority for this federation and nothing else, and get its certificate with their invitation.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tacit.errors import SettingError
from tacit.federation.net.identity import write_secret

AUTHORITY_CERTIFICATE = "ca.pem"
AUTHORITY_KEY = "ca.key"
SERVER_CERTIFICATE = "server.pem"
SERVER_KEY = "server.key"
AUTHORITY_DAYS = 3650
SERVER_DAYS = 397

_EARLIER = datetime.timedelta(hours=1)  # a clock that is a little behind must not refuse a new certificate


def make_authority(folder: Path, *, days: int = AUTHORITY_DAYS) -> None:
    """A new authority: its key, for the owner's eyes, and its certificate, for every member."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tacit federation authority")])
    now = _now()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_secret(folder / AUTHORITY_KEY, _private_text(key))
    (folder / AUTHORITY_CERTIFICATE).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def issue_server(folder: Path, hosts: Sequence[str], *, days: int = SERVER_DAYS) -> None:
    """A certificate for the message server under each of its host names or addresses; replaces an earlier one."""
    authority_key = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), password=None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    authority = _load(folder / AUTHORITY_CERTIFICATE)
    key = ec.generate_private_key(ec.SECP256R1())
    now = _now()
    start = min(now, now + datetime.timedelta(days=days)) - _EARLIER
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tacit message server")]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    (folder / SERVER_KEY).unlink(missing_ok=True)
    write_secret(folder / SERVER_KEY, _private_text(key))
    (folder / SERVER_CERTIFICATE).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def make_own(folder: Path, name: str, host: str, *, days: int = AUTHORITY_DAYS) -> None:
    """A certificate and key `name`.pem and .key, and `name`-authority.pem, of an authority that can sign no other.

    The authority's key is forgotten at once. So whoever pins its certificate knows that nobody else will ever have one
    of the same authority: not the coordinator, nor another node.
    """
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Tacit center node {x509.random_serial_number():x}")])
    now = _now()
    ends = now + datetime.timedelta(days=days)
    builder = x509.CertificateBuilder().issuer_name(issuer).not_valid_before(now - _EARLIER).not_valid_after(ends)
    authority = (
        builder.subject_name(issuer)
        .public_key(authority_key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        builder.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    write_secret(folder / f"{name}.key", _private_text(key))
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}-authority.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))


def days_left(path: Path) -> float:
    """How many days a certificate is still valid; negative if it has expired."""
    return (_load(path).not_valid_after_utc - _now()) / datetime.timedelta(days=1)


def tls_context(authority: str) -> ssl.SSLContext:
    """A context that trusts servers of this authority (a certificate in PEM) and of no other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks the host name and the chain
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=authority)
    except (ssl.SSLError, ValueError):
        raise SettingError("the authority's certificate cannot be read; ask the coordinator for it again") from None
    return context


def _load(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise SettingError(f"{path} cannot be read ({error.strerror}); run `tacit coordinator init` first") from error
    except ValueError:
        raise SettingError(f"{path} is not a certificate; restore it from your backup") from None


def _private_text(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode("ascii")


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
