"""Certificates for TLS: the federation's authority, what it signs, center nodes' own, and whom a client trusts.

- The federation's authority is at the coordinator's. It signs the message server's certificate. Members trust it for
  this federation and nothing else, and get its certificate with their invitation.
- A center node signs its own certificate. The other nodes trust exactly that one, which is on the node's signed card.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import SettingError
from tacit.storage import OWNER_ONLY, write_secret, write_whole

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as missing:
    raise SettingError(
        "certificates need the package cryptography: pip install 'tacit[net]' or 'tacit[secure]'"
    ) from missing

AUTHORITY_CERTIFICATE = "ca.pem"
AUTHORITY_KEY = "ca.key"
SERVER_CERTIFICATE = "server.pem"
SERVER_KEY = "server.key"
AUTHORITY_DAYS = 3650
SERVER_DAYS = 397

_EARLIER = datetime.timedelta(hours=1)  # a clock that is a little behind must not refuse a new certificate
_SERVER = (ExtendedKeyUsageOID.SERVER_AUTH,)
_NODE = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)  # nodes call each other


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who a certificate is for: a name, its public key, and what it may do.

    Attributes:
        name: the holder.
        key: its public key.
        days: how long the certificate is valid; negative makes one that has expired.
        hosts: the host names and addresses under which it is reached; none for an authority.
        purposes: what it may be shown for; none for an authority, which signs others' instead.
    """

    name: x509.Name
    key: CertificatePublicKeyTypes
    days: int
    hosts: Sequence[str] = ()
    purposes: Sequence[x509.ObjectIdentifier] = ()


class Authority:
    """Signs certificates with its own key."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def make(cls, name: str, *, days: int = AUTHORITY_DAYS) -> Authority:
        """A new authority; its key lives as long as this object, unless it is written down."""
        key = _new_key()
        return cls(key, _build(Holder(name=_name(name), key=key.public_key(), days=days), _name(name), key))

    @classmethod
    def load(cls, folder: Path) -> Authority:
        """The authority that `write` wrote."""
        key = load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(key, _load(folder / AUTHORITY_CERTIFICATE))

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    def issue(self, holder: Holder) -> bytes:
        """The holder's certificate, PEM."""
        return _build(holder, self._certificate.subject, self._key).public_bytes(Encoding.PEM)

    def write(self, folder: Path) -> None:
        """Write the key, for the owner's eyes, and the certificate, for every member."""
        write_secret(folder / AUTHORITY_KEY, _private_text(self._key))
        write_whole(folder / AUTHORITY_CERTIFICATE, self.certificate)


def _build(holder: Holder, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """The holder's certificate, signed with the issuer's key."""
    now = _now()
    ends = now + datetime.timedelta(days=holder.days)
    is_authority = not holder.purposes
    builder = (
        x509.CertificateBuilder()
        .subject_name(holder.name)
        .issuer_name(issuer)
        .public_key(holder.key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, ends) - _EARLIER)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
        .add_extension(_usage(sign_certificates=is_authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(holder.key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    if not is_authority:
        hosts = x509.SubjectAlternativeName([_general_name(host) for host in holder.hosts])
        builder = builder.add_extension(x509.ExtendedKeyUsage(list(holder.purposes)), critical=False)
        builder = builder.add_extension(hosts, critical=False)
    return builder.sign(key, hashes.SHA256())


def make_authority(folder: Path, *, days: int = AUTHORITY_DAYS) -> None:
    """A new authority for a federation, written to the coordinator's folder."""
    Authority.make("Tacit federation authority", days=days).write(folder)


def issue_server(folder: Path, hosts: Sequence[str], *, days: int = SERVER_DAYS, for_routes: bool = False) -> None:
    """A certificate for the message server under each of its host names or addresses; replaces an earlier one.

    `for_routes` lets servers of a cluster show it to each other, as clients do.
    """
    key = _new_key()
    certificate = Authority.load(folder).issue(
        Holder(
            name=_name("Tacit message server"),
            key=key.public_key(),
            days=days,
            hosts=hosts,
            purposes=_NODE if for_routes else _SERVER,
        )
    )
    write_whole(folder / SERVER_KEY, _private_text(key), mode=OWNER_ONLY)
    write_whole(folder / SERVER_CERTIFICATE, certificate)


def make_own(folder: Path, name: str, host: str, *, days: int = AUTHORITY_DAYS) -> None:
    """A certificate and key `name`.pem and .key that no authority signed: whoever trusts it trusts this key alone."""
    key = _new_key()
    holder = Holder(name=_name(host), key=key.public_key(), days=days, hosts=[host], purposes=_NODE)
    certificate = _build(holder, holder.name, key).public_bytes(Encoding.PEM)
    write_secret(folder / f"{name}.key", _private_text(key))
    write_whole(folder / f"{name}.pem", certificate)


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


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _private_text(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")


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


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
