"""A round through the center: three parties, three nodes and a coordinator in processes of their own, over TLS.

    python benchmarks/sealed_rounds.py [ROUNDS]

Every answer is proved, signed, sealed and paid for; the nodes check it together and open the sum. Run it with two
releases in turn to compare them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.daemon.conftest import build
from tests.daemon.test_federation import DESCENT, PARTIES, Watch, opt_in, run

from tacit.studies.study import Study

WARM_UP = 10


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        federation = build(Path(temporary), parties={"north": 120, "south": 80, "west": 50})
        try:
            for number in range(3):
                text = DESCENT.replace('"trial"', f'"trial {number}"').replace("rounds = 6", f"rounds = {rounds}")
                study = Study.parse(text)
                opt_in(federation, study, *PARTIES)
                times: list[float] = []
                run(federation, study, Watch(lambda _, times=times: times.append(time.perf_counter())))  # type: ignore[misc]
                gaps = [later - one for one, later in zip(times[WARM_UP:], times[WARM_UP + 1 :], strict=False)]
                print(
                    f"a sealed round of three parties: {1e3 * statistics.median(gaps):.1f} ms (median of {len(gaps)})"
                )
        finally:
            federation.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 80)
