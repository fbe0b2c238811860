"""A study with one column: the smallest one of the reference."""

from __future__ import annotations

import pytest

from tacit import Federation, Numeric, PrivateNewton, Rng, Schema, Table
from tacit.datasets.made_up import SCHEMA, hospitals


@pytest.mark.parametrize("feature", [SCHEMA.features[3], Numeric("age", 18, 100)], ids=lambda feature: feature.name)
def test_one_column_has_an_interval(feature) -> None:
    schema = Schema(features=(feature,), target=SCHEMA.target)
    frames = {name: frame[[feature.name, "readmitted"]] for name, frame in hospitals().items()}
    parties = Federation.from_tables(
        {name: Table.from_frame(frame, schema) for name, frame in frames.items()}, rng=Rng.seeded(1)
    )
    rows = PrivateNewton(epsilon=3.0).fit(parties).table().set_index("term")
    assert rows.loc[feature.name, "low"] < rows.loc[feature.name, "estimate"] < rows.loc[feature.name, "high"]
