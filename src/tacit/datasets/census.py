"""Incomes of the 1994 census (Adult), in three forms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

from tacit.data.feature import Binary, Categorical, Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames, PublicFile, read_table

_ADULT_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
_ADULT_HOME = "https://archive.ics.uci.edu/dataset/2/adult"
_LIBSVM_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
_INCOME = ("<=50K", ">50K")
_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship"),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
)

# The categories of adult.names. Occupation is missing where workclass is, so workclass's indicator speaks for both.
ADULT = Schema(
    (
        Numeric("age", 0, 100),
        Categorical(
            "workclass",
            (
                *(
                    "Private",
                    "Self-emp-not-inc",
                    "Self-emp-inc",
                    "Federal-gov",
                    "Local-gov",
                    "State-gov",
                    "Without-pay",
                ),
                *("Never-worked",),
            ),
            missing="indicator",
        ),
        Numeric("education_num", 1, 16),
        Categorical(
            "marital_status",
            (
                *("Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent"),
                *("Married-AF-spouse",),
            ),
        ),
        Categorical(
            "occupation",
            (
                *("Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty"),
                *("Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving"),
                *("Priv-house-serv", "Protective-serv", "Armed-Forces"),
            ),
            missing="middle",
        ),
        Categorical("relationship", ("Husband", "Wife", "Own-child", "Not-in-family", "Other-relative", "Unmarried")),
        Categorical("race", ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")),
        Binary("sex", ("Female", "Male")),
        Numeric("capital_gain", 0, 100_000),
        Numeric("capital_loss", 0, 5_000),
        Numeric("hours_per_week", 0, 100),
        Categorical(
            "native_country",
            (
                *(
                    "United-States",
                    "Cambodia",
                    "England",
                    "Puerto-Rico",
                    "Canada",
                    "Germany",
                    "Outlying-US(Guam-USVI-etc)",
                ),
                *("India", "Japan", "Greece", "South", "China", "Cuba", "Iran", "Honduras", "Philippines", "Italy"),
                *(
                    "Poland",
                    "Jamaica",
                    "Vietnam",
                    "Mexico",
                    "Portugal",
                    "Ireland",
                    "France",
                    "Dominican-Republic",
                    "Laos",
                ),
                *(
                    "Ecuador",
                    "Taiwan",
                    "Haiti",
                    "Columbia",
                    "Hungary",
                    "Guatemala",
                    "Nicaragua",
                    "Scotland",
                    "Thailand",
                ),
                *("Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands"),
            ),
            missing="indicator",
        ),
    ),
    Target("income", _INCOME),
)

# Each of Adult's 14 attributes puts at most one 1 into a row.
A9A = Schema(tuple(Binary(f"f{j}") for j in range(1, 124)), Target("income", _INCOME), norm_bound=math.sqrt(14))

# As published: values in 0..1 already. Rows are left as they are, for each comparison sets its own norm bound.
ADULT_DPML = Schema(tuple(Numeric(f"x{j}") for j in range(104)), Target("income", _INCOME))


def _read_adult(paths: Mapping[str, Path]) -> Frames:
    frames = {}
    for table, file in {"train": "adult.data.gz", "test": "adult.test.gz"}.items():
        # The test file opens with a comment, and its labels end in a point.
        raw = read_table(paths[file], header=None, names=_COLUMNS, skipinitialspace=True, comment="|", na_values="?")
        raw["income"] = raw["income"].str.rstrip(".")
        frames[table] = raw[[*ADULT.feature_names, "income"]]
    return frames


def _read_a9a(paths: Mapping[str, Path]) -> Frames:
    frames = {}
    for table, file in {"train": "a9a.gz", "test": "a9a.t.gz"}.items():
        X, y = load_svmlight_file(str(paths[file]), n_features=123, zero_based=False)
        frame = pd.DataFrame(X.toarray().astype(np.int8), columns=list(A9A.feature_names))
        frames[table] = frame.assign(income=np.where(y > 0, _INCOME[1], _INCOME[0]))
    return frames


def _read_adult_dpml(paths: Mapping[str, Path]) -> Frames:
    with np.load(paths["adult_dpml.npz"], allow_pickle=False) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"]
    frame = pd.DataFrame(X, columns=list(ADULT_DPML.feature_names))
    frame["income"] = np.where(y > 0, _INCOME[1], _INCOME[0])
    n_train = len(frame) * 8 // 10
    return {"train": frame[:n_train], "test": frame[n_train:]}


DATA_SETS = (
    DataSet(
        name="adult",
        title="who earns more than 50,000 dollars a year (census of 1994)",
        schema=ADULT,
        files=(
            PublicFile(
                "adult.data.gz",
                "c7a2b4716a97f930123e0baf879188d701e798172631a654fc703d4b082907f3",
                plain_sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                url=_ADULT_URL + "adult.data",
            ),
            PublicFile(
                "adult.test.gz",
                "8a2c1bffa6e7ce5abfa43881ae5e87c4311ebc2b3cd526c9c40a43f19f06f799",
                plain_sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                url=_ADULT_URL + "adult.test",
            ),
        ),
        read=_read_adult,
        home=_ADULT_HOME,
        licence="CC BY 4.0",
        note="education is left out (education_num says the same), and fnlwgt (a weight of the survey, no trait).",
    ),
    DataSet(
        name="a9a",
        title="Adult as 123 binary columns, the form of the LIBSVM page",
        schema=A9A,
        files=(
            PublicFile(
                "a9a.gz",
                "b301f3e87350539f3ebc751d07b4691a8c66f0bf38c1d179c86bbf5e2d9623b2",
                plain_sha256="f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
                url=_LIBSVM_URL + "a9a",
            ),
            PublicFile(
                "a9a.t.gz",
                "92967561181c73a60149cc8221b936eb746573fda8cbf483115d673f42b26c3f",
                plain_sha256="1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
                url=_LIBSVM_URL + "a9a.t",
            ),
        ),
        read=_read_a9a,
        home="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html#a9a",
        licence="CC BY 4.0 (Adult)",
        note="Every attribute became a group of binary columns, so a row has at most 14 ones: a norm of sqrt(14).",
    ),
    DataSet(
        name="adult_dpml",
        title="Adult as the public dpml-benchmark prepares it",
        schema=ADULT_DPML,
        files=(PublicFile("adult_dpml.npz", "6cbe7e912c2b34d32661ba69da85d3265a75193cdfa31c94261b43e70d4f6118"),),
        read=_read_adult_dpml,
        home=f"{_ADULT_HOME} (the raw data; dpml-benchmark's preparation makes this form)",
        licence="CC BY 4.0 (Adult)",
        note="Shuffled by its makers; the first 80 % are the train table. No bounds and no norm bound are declared.",
    ),
)
