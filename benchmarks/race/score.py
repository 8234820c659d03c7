"""The score of a contestant: accuracy of retrieving the English translation, %.

Needs NumPy alone, so that it runs in the peer's environment too.
"""

import json
from pathlib import Path

import numpy as np

LEAST_TRAINING_PAIRS = 1000


def score(encode, folder, counts):
    """Returns accuracies of a test: `all` and `seen`, the means over languages, and each one's.

    Args:
      encode: maps texts to unit vectors `[n, dim]`.
      folder: files `<test>.<code>-eng.<code>` and `.eng`, aligned by line.
      counts: training pairs by language; those with LEAST_TRAINING_PAIRS are `seen`.
    """
    return score_similarities(
        lambda foreign, english: _cosines(encode, foreign, english), folder, counts
    )


def score_similarities(similarities, folder, counts):
    """Same as `score`, from a function of foreign and English texts to `[n, n]`."""
    found = {}
    for path in sorted(Path(folder).glob("*-eng.eng")):
        code = path.name.split(".")[1].removesuffix("-eng")
        foreign, english = (_lines(one) for one in (path.with_suffix(f".{code}"), path))
        nearest = np.asarray(similarities(foreign, english)).argmax(axis=1)
        found[code] = 100 * float((nearest == np.arange(len(english))).mean())
    seen = [code for code in found if counts.get(code[:3], 0) >= LEAST_TRAINING_PAIRS]
    means = {"all": list(found), "seen": seen}
    return {
        name: float(np.mean([found[code] for code in codes])) for name, codes in means.items()
    } | {"languages": found}


def score_tests(encode, tests, counts):
    """Returns the score of each test by name.

    Args:
      encode: as for `score`.
      tests: `NAME=FOLDER`, of each test.
      counts: the counts.json of the race's data.
    """
    counts = json.loads(Path(counts).read_text("utf-8"))
    pairs = (test.split("=", 1) for test in tests)
    return {name: score(encode, folder, counts) for name, folder in pairs}


def describe(scores):
    """Returns a line of the means."""
    return ", ".join(
        f"{name} {one['all']:.1f} % ({one['seen']:.1f} % with {LEAST_TRAINING_PAIRS} pairs)"
        for name, one in scores.items()
    )


def _cosines(encode, foreign, english):
    return encode(foreign) @ encode(english).T


def _lines(path):
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")
