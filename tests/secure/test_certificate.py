"""Certificates: one builder makes all of them, and each says what its holder may do."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from tacit.errors import SettingError
from tacit.secure.certificate import Authority, issue_server, make_authority, make_own, request_certificate


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def purposes(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    return set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_the_message_server_may_not_be_a_client_and_a_node_is_both(tmp_path: Path) -> None:
    make_authority(tmp_path)
    issue_server(tmp_path, ["localhost"])
    make_own(tmp_path, "engine", "127.0.0.1")
    assert purposes(read(tmp_path / "server.pem")) == {ExtendedKeyUsageOID.SERVER_AUTH}
    both = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert purposes(read(tmp_path / "engine.pem")) == both
    local = Authority.make().sign(request_certificate("node0", tmp_path / "tls.key"))
    assert purposes(x509.load_pem_x509_certificate(local)) == both


@pytest.mark.parametrize(("authority", "holder"), [("ca", "server"), ("engine-authority", "engine")])
def test_an_authority_signs_holders_that_can_sign_nobody(tmp_path: Path, authority: str, holder: str) -> None:
    make_authority(tmp_path)
    issue_server(tmp_path, ["localhost"])
    make_own(tmp_path, "engine", "127.0.0.1")
    signer, signed = read(tmp_path / f"{authority}.pem"), read(tmp_path / f"{holder}.pem")
    signed.verify_directly_issued_by(signer)
    may_sign = [one.extensions.get_extension_for_class(x509.BasicConstraints).value.ca for one in (signer, signed)]
    assert may_sign == [True, False]


def test_a_nodes_authority_leaves_no_key_behind(tmp_path: Path) -> None:
    make_own(tmp_path, "engine", "127.0.0.1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine-authority.pem", "engine.key", "engine.pem"]


def test_a_new_request_replaces_the_key_which_only_its_owner_reads(tmp_path: Path) -> None:
    key = tmp_path / "tls.key"
    first = request_certificate("node0", key), key.read_text()
    second = request_certificate("node0", key), key.read_text()
    assert first[1] != second[1]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_a_request_that_was_altered_is_not_signed(tmp_path: Path) -> None:
    request = x509.load_pem_x509_csr(request_certificate("node0", tmp_path / "tls.key"))
    raw = bytearray(request.public_bytes(Encoding.DER))
    raw[raw.index(b"node0")] ^= 1
    forged = x509.load_der_x509_csr(bytes(raw)).public_bytes(Encoding.PEM)
    with pytest.raises(SettingError, match="not signed with the key that it names"):
        Authority.make().sign(forged)


def test_without_cryptography_the_package_to_install_is_named() -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from tacit.errors import SettingError\n"
        "try:\n    import tacit.secure.certificate\nexcept SettingError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'tacit[net]' or 'tacit[secure]'" in done.stdout
