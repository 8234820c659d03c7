"""The corpora of the experiment with mined pairs: what is hidden, and what is compared."""

from __future__ import annotations

import pytest

from benchmarks.mining.translation import Pool, corpora

PAIRS = [(f"word {n}", f"كلمة {n}") for n in range(100)]


@pytest.fixture(scope="module")
def pool():
    # A sentence twice, on either side, is one.
    return Pool([*PAIRS, ("word 3", "other"), ("other", "كلمة 4")], seed=1)


def test_the_pool_hides_the_alignment(pool, tmp_path):
    pool.write(tmp_path)
    english, other, gold = (
        (tmp_path / name).read_text("utf-8").splitlines()
        for name in ("en.txt", "other.txt", "gold.tsv")
    )
    assert len(english) == len(set(english)) == 80 and len(set(other)) == 80
    pairs = [tuple(int(place) - 1 for place in line.split("\t")) for line in gold]
    found = [(english[one], other[two]) for one, two in pairs]
    assert found == pool.true and len(found) == 60
    assert set(found) <= {*PAIRS, ("word 3", "other"), ("other", "كلمة 4")}
    # Shuffled apart: lines do not tell.
    assert sum(one == two for one, two in pairs) < 10
    # A fifth of the pairs have left one side alone.
    assert len(set(english) - {one for one, _ in found}) == 20


def test_what_translators_are_trained_on(pool):
    mined = [(2.0 - n / 50, *pair) for n, pair in enumerate(pool.true[:50])]
    mined += [(0.5 - n / 100, one, "wrong") for n, one in enumerate(pool.english[:50])]
    found = corpora(pool, 1.5, mined)
    assert {name: len(pairs) for name, (pairs, _) in found.items()} == {
        "true pairs": 60,
        "random pairs": 60,
        "mined, threshold of DEV": 26,
        "mined, the best 25%": 25,
        "mined, the best 50%": 50,
        "mined, the best 100%": 100,
    }
    assert found["mined, threshold of DEV"] == (pool.true[:26], 1.5)
    random = found["random pairs"][0]
    assert len(set(random) & set(pool.true)) < 10
    assert {one for _, one in random} == {one for _, one in pool.true}
