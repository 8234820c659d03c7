"""The arithmetic of docs/measurements/mining_the_web.md, against numbers worked out by hand."""

import pytest
from repository import DOCS

from benchmarks.mining import cost

DOC = DOCS / "measurements" / "mining_the_web.md"


def test_by_hand():
    # One layer of 2, inside 3: 4 x 4 + 2 x 2 x 3 = 28 weights, twice for each of 5 tokens; 25
    # products of 2 numbers for the weights of attention and 25 to apply them; a pooler of 4.
    encoder = cost.Encoder(layers=1, width=2, intermediate=3)
    assert cost.sentence_flop(encoder, 5) == 2 * 28 * 5 + 2 * (2 * 25 * 2) + 2 * 4
    # BERT base is 85 million weights in its layers: 2.7 GFLOP for 16 tokens.
    base = cost.Encoder(12, 768, 3072)
    assert cost.sentence_flop(base, 16) == pytest.approx(2 * 84_934_656 * 16, rel=0.005)
    assert cost.product_flop(3, 5, 7) == 2 * 3 * 5 * 7


def test_a_search_of_both_sides_at_once():
    # 4 x 100 lists, to the nearest power of 2.
    search = cost.plan_joint_search(40_000, 10_000, dim=8, probes=32)
    assert search.lists == 512
    assert search.compare_flop == 2 * 8 * 40_000 * 10_000 / 16
    assert search.assign_flop == 2 * 8 * 50_000 * 512


def test_the_page_shows_what_the_program_prints(capsys):
    cost.print_tables(cost.parse_arguments([]))
    page = DOC.read_text("utf-8")
    for table in capsys.readouterr().out.strip().split("\n\n"):
        assert table in page
