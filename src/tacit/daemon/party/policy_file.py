"""Write a party's policy into `party.toml`: line by line, so that the owner's own comments stay.

What was written is read again before it takes the file's place. It must say the new policy and the same data; where
lines cannot be exchanged so, the whole `[policy]` is written anew. The daemon reads the file again when it has changed.
"""

from __future__ import annotations

import re
from pathlib import Path

from tacit.daemon.party.settings import FILE, PartyFile
from tacit.errors import SettingError
from tacit.federation.policy import Policy
from tacit.storage import OWNER_ONLY, write_whole
from tacit.studies.toml import toml_value

_SECTION = re.compile(r"^\s*\[([^\]]*)\]")


def write_policy(folder: Path, policy: Policy) -> None:
    """Let `party.toml` say this policy; all else in it stays."""
    path = folder / FILE
    before = PartyFile.read(folder)
    text = path.read_text(encoding="utf-8")
    for candidate in (_exchanged(text, policy), _anew(text, policy)):
        if _says(candidate, path, before, policy):
            write_whole(path, candidate, mode=OWNER_ONLY)
            return
    raise SettingError(f"{path} has a form that cannot be written here; change it with `tacit party policy --edit`")


def policy_values(policy: Policy) -> dict[str, object]:
    """The keys of `[policy]` and their values; None for a key that is left out."""
    budget = policy.budget
    return {
        "methods": None if policy.methods is None else list(policy.methods),
        "columns": None if policy.columns is None else list(policy.columns),
        "min_records": policy.min_records,
        "min_records_exact": policy.min_records_exact,
        "epsilon_per_study": float(budget.epsilon_per_study),
        "epsilon_in_all": float(budget.epsilon_in_all),
        "delta": float(budget.delta),
        "relation": budget.relation,
        "not_private": list(policy.not_private),
        "approvers": None if policy.approvers is None else list(policy.approvers),
    }


def _says(text: str, path: Path, before: PartyFile, policy: Policy) -> bool:
    try:
        read = PartyFile.parse(text.encode(), path)
    except SettingError:
        return False
    return read.data == before.data and policy_values(read.policy) == policy_values(policy)


def _exchanged(text: str, policy: Policy) -> str:
    """The text with another value in the line of each key; a key without a line gets one after `[policy]`."""
    lines, left = [], policy_values(policy)
    section, start = "", 0
    for line in text.splitlines():
        if found := _SECTION.match(line):
            section = found.group(1).strip()
        lines.append(line)
        if section != "policy":
            continue
        if found:
            start = len(lines)
        for key in list(left):
            if re.match(rf"\s*(#\s*)?{key}\s*=", line):
                lines[-1] = _line(key, left.pop(key), line)
                break
    lines[start:start] = [f"{key} = {toml_value(value)}" for key, value in left.items() if value is not None]
    return "\n".join(lines) + "\n"


def _line(key: str, value: object, old: str) -> str:
    """A key's line with another value, and with the comment that it had."""
    comment = re.search(r"\s#[^\"']*$", old)
    kept = comment.group(0).rstrip() if comment else ""
    if value is None:
        return old if old.lstrip().startswith("#") else f"# {old.strip()}"
    told = f"{key} = {toml_value(value)}"
    return f"{told:<29} {kept.strip()}" if kept.strip() else told


def _anew(text: str, policy: Policy) -> str:
    """The text with `[policy]` written from nothing, without its comments."""
    kept, section = [], ""
    for line in text.splitlines():
        if found := _SECTION.match(line):
            section = found.group(1).strip()
        if section != "policy":
            kept.append(line)
    values = [f"{key} = {toml_value(value)}" for key, value in policy_values(policy).items() if value is not None]
    return "\n".join([*kept, "", "[policy]", *values]) + "\n"
