"""The texts of chapter 4 as the document prepares them: messages to newsgroups, and reviews of four kinds of goods.

Vocabulary and word frequencies come from all sources' texts, as in the document. That is not private, and no part of
its account; the rows are the same for every method here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from tacit.datasets.text import newsgroup_texts, review_counts

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

TOPICS = {  # table 4.1; the first of each three is about computers
    "source 1": ("comp.graphics", "rec.autos", "sci.space"),
    "source 2": ("comp.os.ms-windows.misc", "talk.politics.guns", "sci.med"),
    "source 3": ("comp.sys.ibm.pc.hardware", "soc.religion.christian", "talk.politics.mideast"),
    "source 4": ("comp.sys.mac.hardware", "misc.forsale", "rec.sport.baseball"),
    "source 5": ("comp.windows.x", "talk.religion.misc", "sci.crypt"),
}
GOODS = ("books", "dvd", "kitchen", "electronics")  # in the order in which the document names them
TOP_WORDS = 1500


@dataclass(frozen=True)
class Corpus:
    """The rows and labels of each source, all of the same columns, of norm 1."""

    rows: dict[str, sparse.csr_matrix]
    labels: dict[str, Labels]

    @property
    def n_columns(self) -> int:
        """How many words there are."""
        return int(next(iter(self.rows.values())).shape[1])


@cache
def corpus(data: str) -> Corpus:
    """The corpus of a data set, "newsgroups20" or "amazon_sentiment"."""
    return _newsgroups() if data == "newsgroups20" else _reviews()


def _newsgroups() -> Corpus:
    """Words whose frequency in some source's messages lies between 0.5 % and half of them."""
    texts = newsgroup_texts()
    mine = {name: [text for group in groups for text in texts[group]] for name, groups in TOPICS.items()}
    labels = {
        name: np.concatenate([np.full(len(texts[group]), int(group == groups[0])) for group in groups])
        for name, groups in TOPICS.items()
    }
    words: set[str] = set()
    for said in mine.values():
        words |= set(CountVectorizer(max_df=0.5, min_df=0.005, stop_words="english").fit(said).vocabulary_)
    counter = CountVectorizer(vocabulary=sorted(words))
    return _weighed({name: counter.transform(said) for name, said in mine.items()}, labels)


def _reviews() -> Corpus:
    """The 1,500 commonest words and pairs of each kind of goods."""
    counts = review_counts()
    commonest: set[int] = set()
    for name in GOODS:
        commonest |= set(np.argsort(-np.asarray(counts[name][0].sum(axis=0)).ravel(), kind="stable")[:TOP_WORDS])
    columns = sorted(commonest)
    return _weighed({name: counts[name][0][:, columns] for name in GOODS}, {name: counts[name][1] for name in GOODS})


def _weighed(counts: dict[str, sparse.csr_matrix], labels: dict[str, Labels]) -> Corpus:
    """Normalised tf-idf; a hair below norm 1, so that rounding makes no row longer. Empty texts are left out."""
    idf = TfidfTransformer().fit(sparse.vstack(list(counts.values())))
    full = {name: np.asarray(X.sum(axis=1)).ravel() > 0 for name, X in counts.items()}
    rows = {name: sparse.csr_matrix(idf.transform(X[full[name]]) * (1 - 1e-12)) for name, X in counts.items()}
    return Corpus(rows, {name: labels[name][full[name]].astype(np.int64) for name in counts})
