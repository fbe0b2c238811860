"""Attacks on a network (KDD Cup 1999)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from tacit.data.feature import Binary, Categorical, Feature, Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames, PublicFile, read_table

_SERVICES = (
    *("http", "IRC", "X11", "Z39_50", "auth", "bgp", "courier", "csnet_ns", "ctf", "daytime", "discard", "domain"),
    *("domain_u", "echo", "eco_i", "ecr_i", "efs", "exec", "finger", "ftp", "ftp_data", "gopher", "hostnames"),
    *("http_443", "icmp", "imap4", "iso_tsap", "klogin", "kshell", "ldap", "link", "login", "mtp", "name"),
    *("netbios_dgm", "netbios_ns", "netbios_ssn", "netstat", "nnsp", "nntp", "ntp_u", "other", "pm_dump", "pop_2"),
    *("pop_3", "printer", "private", "red_i", "remote_job", "rje", "shell", "smtp", "sql_net", "ssh", "sunrpc"),
    *("supdup", "systat", "telnet", "tftp_u", "tim_i", "time", "urh_i", "urp_i", "uucp", "uucp_path", "vmnet"),
    *("whois",),
)
_FLAGS = ("SF", "OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SH")
_AMOUNTS = ("duration", "src_bytes", "dst_bytes")  # no natural end: given as logarithms
_BINARY = ("land", "logged_in", "root_shell", "is_host_login", "is_guest_login")
_LEFT_OUT = "num_outbound_cmds"
# Ends of the counts as the challenge's task description defines them: windows of two seconds (at most 511 connections
# are counted) or of 255 connections; counts of rare events end where more of them would tell nothing more.
_COUNTS = {
    **{
        "wrong_fragment": 3,
        "urgent": 3,
        "hot": 100,
        "num_failed_logins": 5,
        "num_compromised": 1000,
        "su_attempted": 1,
    },
    **{"num_root": 1000, "num_file_creations": 100, "num_shells": 5, "num_access_files": 10, "count": 511},
    **{"srv_count": 511, "dst_host_count": 255, "dst_host_srv_count": 255},
}
_COLUMNS = (
    *("duration", "protocol_type", "service", "flag", "src_bytes", "dst_bytes", "land", "wrong_fragment", "urgent"),
    *("hot", "num_failed_logins", "logged_in", "num_compromised", "root_shell", "su_attempted", "num_root"),
    *("num_file_creations", "num_shells", "num_access_files", "num_outbound_cmds", "is_host_login", "is_guest_login"),
    *("count", "srv_count", "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate", "same_srv_rate"),
    *("diff_srv_rate", "srv_diff_host_rate", "dst_host_count", "dst_host_srv_count", "dst_host_same_srv_rate"),
    *("dst_host_diff_srv_rate", "dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate", "dst_host_serror_rate"),
    *("dst_host_srv_serror_rate", "dst_host_rerror_rate", "dst_host_srv_rerror_rate", "label"),
)


def _feature(name: str) -> Feature:
    if name in _AMOUNTS:
        return Numeric(f"log10_{name}", 0, 9)
    if name in _BINARY:
        return Binary(name)
    if name in _COUNTS:
        return Numeric(name, 0, _COUNTS[name])
    if name.endswith("_rate"):
        return Numeric(name, 0, 1)
    labels = {"protocol_type": ("tcp", "udp", "icmp"), "service": _SERVICES, "flag": _FLAGS}
    return Categorical(name, labels[name])


SCHEMA = Schema(
    tuple(_feature(name) for name in _COLUMNS if name not in (_LEFT_OUT, "label")),
    Target("kind", ("normal", "attack")),
)


def _read(paths: Mapping[str, Path]) -> Frames:
    files = {"train": "kddcup.data_10_percent.gz", "test": "corrected.gz"}
    return {table: _connections(paths[file]) for table, file in files.items()}


def _connections(path: Path) -> pd.DataFrame:
    raw = read_table(path, header=None, names=_COLUMNS)
    for column in _AMOUNTS:
        raw[f"log10_{column}"] = np.log10(1.0 + raw[column])
    raw["kind"] = (raw["label"] != "normal.").map({False: "normal", True: "attack"})
    return raw[[*SCHEMA.feature_names, "kind"]]


DATA_SETS = (
    DataSet(
        name="kdd99",
        title="connections in a military network, normal or an attack (KDD Cup 1999, the 10 % file and the test file)",
        schema=SCHEMA,
        files=(
            PublicFile(
                "kddcup.data_10_percent.gz",
                "8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
                url="https://ndownloader.figshare.com/files/5976042",
            ),
            PublicFile(
                "corrected.gz",
                "74f0daef49b242badc09f2adbd457dea6a45b4f77177efbd11216d333651044b",
                plain_sha256="547dfb9c0f0dc1d9944219ec79e851191faebaeb8acbfa1cd171c418397052a4",
            ),
        ),
        read=_read,
        home="https://kdd.ics.uci.edu/databases/kddcup99/kddcup99.html",
        licence="CC BY 4.0",
        note=(
            "The many exact duplicates (348,435 train records) are kept. Duration and byte counts x are given as "
            "log10(1 + x). num_outbound_cmds is left out: it is always 0."
        ),
    ),
)
