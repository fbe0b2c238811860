"""Certificates: one builder makes all of them, and each says what its holder may do."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from tacit.secure.certificate import issue_server, make_authority, make_own


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def purposes(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    return set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def may_sign(certificate: x509.Certificate) -> bool:
    return bool(certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca)


def test_the_message_server_may_not_be_a_client_and_a_node_is_both(tmp_path: Path) -> None:
    make_authority(tmp_path)
    issue_server(tmp_path, ["localhost"])
    make_own(tmp_path, "engine", "127.0.0.1")
    assert purposes(read(tmp_path / "server.pem")) == {ExtendedKeyUsageOID.SERVER_AUTH}
    both = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert purposes(read(tmp_path / "engine.pem")) == both
    issue_server(tmp_path, ["localhost"], for_routes=True)  # servers of a cluster reach each other
    assert purposes(read(tmp_path / "server.pem")) == both


def test_the_authority_signs_a_server_that_can_sign_nobody(tmp_path: Path) -> None:
    make_authority(tmp_path)
    issue_server(tmp_path, ["localhost"])
    signer, signed = read(tmp_path / "ca.pem"), read(tmp_path / "server.pem")
    signed.verify_directly_issued_by(signer)
    assert [may_sign(one) for one in (signer, signed)] == [True, False]


def test_a_node_signs_its_own_certificate_and_no_other(tmp_path: Path) -> None:
    make_own(tmp_path, "engine", "127.0.0.1")
    own = read(tmp_path / "engine.pem")
    own.verify_directly_issued_by(own)
    assert not may_sign(own)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine.key", "engine.pem"]
    assert stat.S_IMODE((tmp_path / "engine.key").stat().st_mode) == 0o600


def test_without_cryptography_the_package_to_install_is_named() -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from tacit.errors import SettingError\n"
        "try:\n    import tacit.secure.certificate\nexcept SettingError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'tacit[net]' or 'tacit[secure]'" in done.stdout
