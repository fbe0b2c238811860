"""Popularity of online news."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tacit.data.feature import Binary, Feature, Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames, PublicFile, read_table

_FILE = "OnlineNewsPopularity_53feat.csv.xz"
_POPULAR = ("below 1400", "1400 or more")
_CHANNELS = ("lifestyle", "entertainment", "bus", "socmed", "tech", "world")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday")  # a Sunday is none of them
_TOPICS = ("LDA_00", "LDA_01", "LDA_02", "LDA_03")  # LDA_04 is what the others leave to 1
_SHARES = 850_000.0  # no article of the site was shared more often

_RANGES: dict[str, tuple[float, float]] = {
    **{"n_tokens_title": (0, 25), "n_tokens_content": (0, 5000), "n_unique_tokens": (0, 1), "num_hrefs": (0, 150)},
    **{"num_self_hrefs": (0, 50), "num_imgs": (0, 100), "num_videos": (0, 50), "average_token_length": (0, 10)},
    **{"num_keywords": (0, 10), "kw_min_min": (-1, 400), "kw_max_min": (0, 20_000), "kw_avg_min": (-1, 5000)},
    **{"kw_max_max": (0, _SHARES), "kw_avg_max": (0, _SHARES), "kw_min_avg": (-1, 5000), "kw_max_avg": (0, 50_000)},
    **{
        "kw_avg_avg": (0, 20_000),
        "self_reference_min_shares": (0, 100_000),
        "self_reference_avg_sharess": (0, 100_000),
    },
    **dict.fromkeys(_TOPICS, (0.0, 1.0)),
    **{"global_subjectivity": (0, 1), "global_sentiment_polarity": (-1, 1), "global_rate_positive_words": (0, 0.2)},
    **{"global_rate_negative_words": (0, 0.2), "rate_positive_words": (0, 1), "rate_negative_words": (0, 1)},
    **{"avg_positive_polarity": (0, 1), "min_positive_polarity": (0, 1), "max_positive_polarity": (0, 1)},
    **{"avg_negative_polarity": (-1, 0), "min_negative_polarity": (-1, 0), "max_negative_polarity": (-1, 0)},
    **{"title_subjectivity": (0, 1), "title_sentiment_polarity": (-1, 1), "abs_title_subjectivity": (0, 0.5)},
    **{"abs_title_sentiment_polarity": (0, 1)},
}
_BINARY = (*(f"data_channel_is_{name}" for name in _CHANNELS), *(f"weekday_is_{day}" for day in _DAYS))
_FEATURES: tuple[Feature, ...] = (
    *(Numeric(name, *bounds) for name, bounds in _RANGES.items()),
    *(Binary(name) for name in _BINARY),
)
SCHEMA = Schema(_FEATURES, Target("shares", _POPULAR))


def _read(paths: Mapping[str, Path]) -> Frames:
    raw = read_table(paths[_FILE])
    raw["shares"] = (raw["shares"] >= 1400).map(dict(zip((False, True), _POPULAR, strict=True)))
    return {"articles": raw[[*SCHEMA.feature_names, "shares"]]}


DATA_SETS = (
    DataSet(
        name="online_news",
        title="articles of one news site, and whether they were shared 1,400 times or more",
        schema=SCHEMA,
        files=(PublicFile(_FILE, "34980a25f8005344a5a5b01cc209e4fd2d14a998921a59ee4697973e6412e7ae"),),
        read=_read,
        home="https://archive.ics.uci.edu/dataset/332/online+news+popularity",
        licence="CC BY 4.0",
        note=(
            "This file has 53 of the original's 58 predictive columns. weekday_is_sunday and LDA_04 are left out: the "
            "other days and topics determine them. url and timedelta are no predictors."
        ),
    ),
)
