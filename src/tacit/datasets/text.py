"""Messages and reviews, as hashed words.

Words are hashed into a public, fixed number of columns, so no vocabulary is learned from anybody's texts. Rows have
norm 1 at most. A text itself is never kept, shown or put into an error.
"""

from __future__ import annotations

import gzip
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from tacit.data.feature import Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames, PublicFile

N_COLUMNS = 2**11
_COLUMNS = [f"h{j}" for j in range(N_COLUMNS)]
_FEATURES = tuple(Numeric(name) for name in _COLUMNS)
_GROUPS = (
    *("alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    *("comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey"),
    *("sci.crypt", "sci.electronics", "sci.med", "sci.space", "soc.religion.christian", "talk.politics.guns"),
    *("talk.politics.mideast", "talk.politics.misc", "talk.religion.misc"),
)
_DOMAINS = ("books", "dvd", "electronics", "kitchen")
NEWSGROUPS = Schema(_FEATURES, Target("group", _GROUPS), norm_bound=1.0)
SENTIMENT = Schema(_FEATURES, Target("sentiment", ("negative", "positive")), norm_bound=1.0)


def _read_newsgroups(paths: Mapping[str, Path]) -> Frames:
    hasher = HashingVectorizer(n_features=N_COLUMNS, alternate_sign=False, norm=None)
    frames = {}
    for part in ("train", "test"):
        labels: list[str] = []
        X = hasher.transform(_messages(paths["20news-bydate.tar.gz"], f"20news-bydate-{part}/", labels))
        frames[part] = _frame(X, "group", labels)
    return frames


def _messages(path: Path, folder: str, labels: list[str]) -> Iterator[str]:
    """The bodies of one part's messages in the archive's order; each one's group is appended to labels."""
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.startswith(folder):
                file = archive.extractfile(member)
                assert file is not None  # a regular file has content
                labels.append(member.name.split("/")[1])
                # The header names the group, the writer and the house he writes from: the body alone is the text.
                yield file.read().decode("latin-1").partition("\n\n")[2]


def _read_sentiment(paths: Mapping[str, Path]) -> Frames:
    hasher = FeatureHasher(n_features=N_COLUMNS, alternate_sign=False)
    frames = {}
    for domain in _DOMAINS:
        labels: list[str] = []
        X = hasher.transform(_reviews(paths["processed_acl_labelled.tar.gz"], domain, labels))
        frames[domain] = _frame(X, "sentiment", labels)
    return frames


def _reviews(path: Path, domain: str, labels: list[str]) -> Iterator[dict[str, int]]:
    """The word counts of one domain's reviews; each one's sentiment is appended to labels."""
    with tarfile.open(path) as archive:
        for sentiment in ("negative", "positive"):
            file = archive.extractfile(f"processed_acl/{domain}/{sentiment}.review")
            assert file is not None
            for line in file.read().decode("utf-8").splitlines():
                pairs = (pair.rsplit(":", 1) for pair in line.split())
                labels.append(sentiment)
                yield {word: int(count) for word, count in pairs if word != "#label#"}


def _frame(X: sparse.csr_matrix, target: str, labels: list[str]) -> pd.DataFrame:
    # A hair below 1, so that rounding makes no row longer than the norm bound.
    dense = np.asarray(normalize(X).toarray()) * (1 - 1e-12)
    frame = pd.DataFrame(dense, columns=_COLUMNS)
    return pd.concat([frame, pd.Series(labels, name=target)], axis=1)


def newsgroup_texts() -> dict[str, list[str]]:
    """The bodies of all messages by group, without quotations and signatures: for reproductions that count words.

    Names and addresses of real people are in them: count, and never show one.
    """
    path = DATA_SETS[0].find(DATA_SETS[0].files[0])
    found: dict[str, list[str]] = {}
    for part in ("train", "test"):
        labels: list[str] = []
        texts = list(_messages(path, f"20news-bydate-{part}/", labels))
        for group, text in zip(labels, texts, strict=True):
            found.setdefault(group, []).append(_own_words(text))
    return found


def _own_words(text: str) -> str:
    """A message without the lines that quote another, and without what follows its last blank line, or dashes."""
    lines = [line for line in text.strip().split("\n") if not _QUOTATION.search(line)]
    ends = [k for k, line in enumerate(lines) if k > 0 and not line.strip().strip("-")]
    return "\n".join(lines[: ends[-1]] if ends else lines)


def review_counts() -> dict[str, tuple[sparse.csr_matrix, npt.NDArray[np.int64]]]:
    """Counts of 5,000 words and pairs of words in 27,677 reviews, and 1 for a positive one, by kind of goods.

    The same reviews as Blitzer et al. collected, with those that `amazon_sentiment` leaves out.
    """
    found = {}
    for domain in _DOMAINS:
        parts = []
        for file in _COUNT_FILES:
            if file.name.startswith(f"dann_svmlight/{domain}_"):
                with gzip.open(DATA_SETS[1].find(file)) as opened:
                    parts.append(load_svmlight_file(opened, n_features=5000, zero_based=True))
        X = sparse.vstack([part[0] for part in parts]).tocsr()
        found[domain] = (X, (np.concatenate([part[1] for part in parts]) > 0).astype(np.int64))
    return found


_QUOTATION = re.compile(r"^\s*[>|]|^In article|^Quoted from|writes in|(writes|wrote|says|said):")
_COUNT_FILES = tuple(
    PublicFile(f"dann_svmlight/{name}.svmlight.gz", sha256)
    for name, sha256 in {
        "books_test": "0f139e7404dda1c014a6410b485513e163bf16526da4cbdcd6dac893ce4b9842",
        "books_train": "93a6e772bb6a55f728a31bcd405091cfbdd83c65e0592ced4edafed0556d00db",
        "dvd_test": "657046eca0635f24d045466d2d9ed76161fbe7e0bbe95b2ec3a92da88b7b8e46",
        "dvd_train": "ea44d696f2e32d93c4b5f53dc3f5b50aa17a4e2c1af88530cb88ea1d32609ed4",
        "electronics_test": "cad5419fa3f27bf00b877418c9f848782c80051a875e077871f30f112c17ddcd",
        "electronics_train": "10d34b416b4c7e4e55227e136a85da9493937ea2b12149f814ed6cacec0cb972",
        "kitchen_test": "270ff6cfa01e2bbefd47798ac11f491dff11c3a34a09faec0852d30704283ec0",
        "kitchen_train": "a7c6491d2b917bca70968b9ea0a45d9cbf07717a00fc17224ceadbf2d473151e",
    }.items()
)

DATA_SETS = (
    DataSet(
        name="newsgroups20",
        title="messages to twenty newsgroups, split by date",
        schema=NEWSGROUPS,
        files=(
            PublicFile(
                "20news-bydate.tar.gz",
                "2db33aa1513eb1dc70dd021fc9e39ba78d2487ff175d003a0c6f7720ad41c808",
                original_sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
                url="https://ndownloader.figshare.com/files/5975967",
            ),
        ),
        read=_read_newsgroups,
        home="http://qwone.com/~jason/20Newsgroups/",
        licence="no licence stated",
        note=f"Bodies only, for headers name the group and real people. Word counts hashed into {N_COLUMNS} columns.",
    ),
    DataSet(
        name="amazon_sentiment",
        title="reviews of books, DVDs, electronics and kitchenware, negative or positive",
        schema=SENTIMENT,
        files=(
            PublicFile(
                "processed_acl_labelled.tar.gz",
                "4ee291c63e1217fb31d10f256a8781b7f4c0a1fdfd49e84887e5b8fd1e08498f",
            ),
        ),
        read=_read_sentiment,
        home="https://www.cs.jhu.edu/~mdredze/datasets/sentiment/ (processed_acl.tar.gz, its labelled part)",
        licence="for research; cite Blitzer, Dredze and Pereira (2007)",
        note=f"One table for each kind of goods. Counts of words and pairs of words hashed into {N_COLUMNS} columns.",
    ),
)
