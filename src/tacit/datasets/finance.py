"""Banks, cards, loans and insurance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from tacit.data.feature import Binary, Categorical, Numeric, Target
from tacit.data.schema import Schema
from tacit.datasets.dataset import DataSet, Frames, PublicFile, read_table

_NO_YES = ("no", "yes")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

BANK = Schema(
    (
        Numeric("age", 0, 100),
        Categorical(
            "job",
            (
                *(
                    "admin.",
                    "unknown",
                    "unemployed",
                    "management",
                    "housemaid",
                    "entrepreneur",
                    "student",
                    "blue-collar",
                ),
                *("self-employed", "retired", "technician", "services"),
            ),
        ),
        Categorical("marital", ("married", "divorced", "single")),
        Categorical("education", ("unknown", "secondary", "primary", "tertiary")),
        Binary("default", _NO_YES),
        Numeric("balance", -10_000, 30_000),
        Binary("housing", _NO_YES),
        Binary("loan", _NO_YES),
        Categorical("contact", ("unknown", "telephone", "cellular")),
        Numeric("day", 1, 31),
        Categorical("month", _MONTHS),
        Numeric("campaign", 1, 20),
        Numeric("pdays", -1, 400),
        Numeric("previous", 0, 20),
        Categorical("poutcome", ("unknown", "other", "failure", "success")),
    ),
    Target("y", _NO_YES),
    ignore=("duration",),
)

_EDUCATION = ("graduate school", "university", "high school", "others")  # codes 1 to 4
_MARRIAGE = ("married", "single", "others")  # codes 1 to 3
CREDIT = Schema(
    (
        Numeric("LIMIT_BAL", 0, 1_000_000),
        Binary("SEX", ("male", "female")),
        Categorical("EDUCATION", _EDUCATION, unknown="bucket"),
        Categorical("MARRIAGE", _MARRIAGE, unknown="bucket"),
        Numeric("AGE", 0, 100),
        *(Numeric(f"PAY_{month}", -2, 9) for month in (0, 2, 3, 4, 5, 6)),
        *(Numeric(f"BILL_AMT{month}", -100_000, 1_000_000) for month in range(1, 7)),
        *(Numeric(f"PAY_AMT{month}", 0, 200_000) for month in range(1, 7)),
    ),
    Target("default_next_month", _NO_YES),
)

# Principal components of a standardised table: their variances start near 4 and sink below 1.
CARD = Schema(
    (*(Numeric(f"V{j}", -20, 20) for j in range(1, 29)), Numeric("Amount", 0, 5_000)),
    Target("fraud", _NO_YES),
)

_LOAN_STATUS = {"Fully Paid": "no", "Charged Off": "yes"}
LOAN = Schema(
    (
        Numeric("loan_amnt", 0, 40_000),
        Binary("term", ("36", "60")),
        Numeric("int_rate", 0, 0.3),
        Numeric("installment", 0, 1_500),
        Categorical("grade", tuple("ABCDEFG")),
        Categorical(
            "emp_length",
            ("< 1 year", "1 year", *(f"{years} years" for years in range(2, 10)), "10+ years"),
            missing="indicator",
        ),
        Categorical("home_ownership", ("RENT", "OWN", "MORTGAGE", "OTHER", "NONE")),
        Numeric("annual_inc", 0, 300_000, missing="middle"),
        Categorical("verification_status", ("Not Verified", "Verified", "Source Verified")),
        Categorical(
            "purpose",
            (
                *(
                    "debt_consolidation",
                    "car",
                    "credit_card",
                    "educational",
                    "home_improvement",
                    "house",
                    "major_purchase",
                ),
                *("medical", "moving", "other", "renewable_energy", "small_business", "vacation", "wedding"),
            ),
        ),
        Numeric("dti", 0, 40),
        Numeric("delinq_2yrs", 0, 10, missing="middle"),
        Numeric("inq_last_6mths", 0, 10, missing="middle"),
        Numeric("open_acc", 0, 50, missing="middle"),
        Numeric("pub_rec", 0, 5, missing="middle"),
        Numeric("revol_bal", 0, 150_000),
        Numeric("revol_util", 0, 1.2, missing="middle"),
        Numeric("total_acc", 0, 100, missing="middle"),
        Numeric("pub_rec_bankruptcies", 0, 2, missing="indicator"),
        Numeric("credit_years", 0, 60, missing="middle"),
    ),
    Target("charged_off", _NO_YES),
)

_POLICIES = (
    *("WAPART", "WABEDR", "WALAND", "PERSAUT", "BESAUT", "MOTSCO", "VRAAUT", "AANHANG", "TRACTOR", "WERKT", "BROM"),
    *("LEVEN", "PERSONG", "GEZONG", "WAOREG", "BRAND", "ZEILPL", "PLEZIER", "FIETS", "INBOED", "BYSTAND"),
)
_HOUSEHOLD = {"MAANTHUI": (1, 10), "MGEMOMV": (1, 6), "MGEMLEEF": (1, 6), "MKOOPKLA": (1, 8)}
_COIL_COLUMNS = (
    *("MOSTYPE", "MAANTHUI", "MGEMOMV", "MGEMLEEF", "MOSHOOFD", "MGODRK", "MGODPR", "MGODOV", "MGODGE", "MRELGE"),
    *("MRELSA", "MRELOV", "MFALLEEN", "MFGEKIND", "MFWEKIND", "MOPLHOOG", "MOPLMIDD", "MOPLLAAG", "MBERHOOG"),
    *("MBERZELF", "MBERBOER", "MBERMIDD", "MBERARBG", "MBERARBO", "MSKA", "MSKB1", "MSKB2", "MSKC", "MSKD", "MHHUUR"),
    *("MHKOOP", "MAUT1", "MAUT2", "MAUT0", "MZFONDS", "MZPART", "MINKM30", "MINK3045", "MINK4575", "MINK7512"),
    *("MINK123M", "MINKGEM", "MKOOPKLA", *(f"P{policy}" for policy in _POLICIES), *(f"A{p}" for p in _POLICIES)),
)
COIL = Schema(
    (
        Categorical("MOSHOOFD", tuple(str(code) for code in range(1, 11))),
        *(
            Numeric(name, *_HOUSEHOLD.get(name, (0, 9)))
            for name in _COIL_COLUMNS
            if name not in ("MOSTYPE", "MOSHOOFD")
        ),
    ),
    Target("CARAVAN", _NO_YES),
)


def _read_bank(paths: Mapping[str, Path]) -> Frames:
    return {"clients": read_table(paths["bank-full.csv.gz"], sep=";").drop(columns="duration")}


def _read_credit(paths: Mapping[str, Path]) -> Frames:
    raw = read_table(paths["UCI_Credit_Card.csv.gz"])
    frame = raw[list(CREDIT.feature_names)].copy()
    frame["SEX"] = raw["SEX"].map({1: "male", 2: "female"})
    for column, labels in (("EDUCATION", _EDUCATION), ("MARRIAGE", _MARRIAGE)):
        frame[column] = raw[column].map(dict(enumerate(labels, start=1))).fillna("undocumented")
    frame["default_next_month"] = raw["default.payment.next.month"].map(dict(enumerate(_NO_YES)))
    return {"clients": frame}


def _read_card(paths: Mapping[str, Path]) -> Frames:
    raw = read_table(paths["creditcard.csv.gz"])
    return {
        "transactions": raw.assign(fraud=raw["Class"].map(dict(enumerate(_NO_YES)))).drop(columns=["Time", "Class"])
    }


def _read_loan(paths: Mapping[str, Path]) -> Frames:
    wanted = [name for name in LOAN.feature_names if name != "credit_years"]
    raw = read_table(
        paths["LendingClub_2007_2011.csv.xz"], usecols=[*wanted, "loan_status", "issue_d", "earliest_cr_line"]
    )
    raw = raw[raw["loan_status"].isin(_LOAN_STATUS)].reset_index(drop=True)
    issued, opened = pd.to_datetime(raw["issue_d"]), pd.to_datetime(raw["earliest_cr_line"])
    frame = raw[wanted].copy()
    frame["credit_years"] = (issued - opened).dt.days / 365.25
    frame["charged_off"] = raw["loan_status"].map(_LOAN_STATUS)
    return {"loans": frame}


def _read_coil(paths: Mapping[str, Path]) -> Frames:
    train = read_table(paths["ticdata2000.txt.gz"], sep="\t", header=None, names=[*_COIL_COLUMNS, "CARAVAN"])
    test = read_table(paths["ticeval2000.txt.gz"], sep="\t", header=None, names=_COIL_COLUMNS)
    test["CARAVAN"] = read_table(paths["tictgts2000.txt.gz"], header=None)[0]
    frames = {"train": train, "test": test}
    for frame in frames.values():
        frame["CARAVAN"] = frame["CARAVAN"].map(dict(enumerate(_NO_YES)))
    return {name: frame[[*COIL.feature_names, "CARAVAN"]] for name, frame in frames.items()}


DATA_SETS = (
    DataSet(
        name="bank_marketing",
        title="clients of a Portuguese bank, and whether they took a term deposit",
        schema=BANK,
        files=(
            PublicFile(
                "bank-full.csv.gz",
                "a33820520e31d26b498e31003e99eb0e477690b699a38eade375acf3b3004dcd",
                plain_sha256="d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
            ),
        ),
        read=_read_bank,
        home="https://archive.ics.uci.edu/dataset/222/bank+marketing (inside bank.zip)",
        licence="CC BY 4.0",
        note="duration is left out: how long a call lasted is known only once its outcome is.",
    ),
    DataSet(
        name="default_credit",
        title="clients of a bank in Taiwan, and whether they default next month",
        schema=CREDIT,
        files=(
            PublicFile(
                "UCI_Credit_Card.csv.gz",
                "9006fb4a97e142c734d9ff1efbbfc48abb5507415cef0222b06cddbe643d4c8b",
                plain_sha256="e3d893c1b4a9dc73220d01e18975ea04adb79fd8e0cebed1aea739e77797224e",
            ),
        ),
        read=_read_credit,
        home="https://archive.ics.uci.edu/dataset/350/default+of+credit+card+clients",
        licence="CC BY 4.0",
        note="ID is left out. Codes of EDUCATION and MARRIAGE that the documentation does not know share a column.",
    ),
    DataSet(
        name="creditcard_fraud",
        title="card payments of two days in 2013, and which were fraud",
        schema=CARD,
        files=(
            PublicFile(
                "creditcard.csv.gz",
                "fccb6343b69ea351e91039f4050221f018ec8856d91a8022c833ef44ada2e4e2",
                plain_sha256="76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
                url="https://storage.googleapis.com/download.tensorflow.org/data/creditcard.csv",
            ),
        ),
        read=_read_card,
        home="https://www.kaggle.com/datasets/mlg-ulb/creditcardfraud",
        licence="ODbL 1.0 / DbCL 1.0",
        note=(
            "Time (seconds since the first payment) is left out: it means nothing outside those two days. V1 to V28 "
            "are principal components that their makers computed."
        ),
    ),
    DataSet(
        name="lending_club",
        title="loans of 2007 to 2011, and which were charged off",
        schema=LOAN,
        files=(
            PublicFile(
                "LendingClub_2007_2011.csv.xz",
                "6df26d9b1f70b0402a555acc16bb4e5a397ef135bfdbf05e35b02bfb1fb14ee6",
            ),
        ),
        read=_read_loan,
        home="https://www.lendingclub.com (public loan statistics, no longer offered there)",
        licence="public release by the lender",
        note=(
            "Only what was known when the loan was issued: payments, recoveries, hardship and settlement columns give "
            "the label away. Free text, places and ids are left out, and 2,749 loans outside the credit policy."
        ),
    ),
    DataSet(
        name="coil2000",
        title="households, and which have a caravan insured (CoIL challenge 2000)",
        schema=COIL,
        files=(
            PublicFile(
                "ticdata2000.txt.gz",
                "3cf1ee0e52eea7367d5102a92cfc7b56264a88f996c49cc5a2ac525d3201077b",
                plain_sha256="f6a7fe083ccedb3776bc30f5e000bdd34bfd25f625d2b4672f84afa6b70cb178",
            ),
            PublicFile(
                "ticeval2000.txt.gz",
                "1242281b9c770baa1906039a89f15c7a9838f6b6d73756c73ad59fb93aadea5d",
                plain_sha256="880f3b7dbc1174ddd10e7a20ef1e4bc3a8e345400d4b553744c5ef0c71493837",
            ),
            PublicFile(
                "tictgts2000.txt.gz",
                "9b14124d03820aac37ddcadc856548c1f59c001d0049b808c9a83037f063a0f2",
                plain_sha256="42274a9b6d1ced5fcb35e2c103869060118ceaa7e5c5fac1a652e1f1a5806da8",
            ),
        ),
        read=_read_coil,
        home="https://archive.ics.uci.edu/dataset/125/insurance+company+benchmark+coil+2000",
        licence="free for research and teaching, as the challenge states",
        note="MOSTYPE (41 types of customer) is left out: MOSHOOFD groups them into ten.",
    ),
)
