"""A peer that does other work than ours is no peer: each check passes the same and fails others."""

import json

import pytest

from benchmarks.peers import same_work
from benchmarks.peers.tokens import write_sample
from vocab import wordpiece_file

VOCAB = ["[PAD]", "[UNK]", "ein", "Haus", "##tür"]
IDS = {token: number for number, token in enumerate(VOCAB)}
# As Transformers 5 makes of `vocab_file=`: its five special tokens and nothing else.
SPECIAL = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
# As from a reader that strips `##tür ` to a token that it has already.
STRIPPED = [*VOCAB, "##tür\u3000", "Tor"]
TEXTS = ["ein Haus", "ein Haustür", "Haus Haus ein"]
OURS = [[2, 3], [2, 3, 4], [3, 3, 2]]
# A hundred texts, with one or three that a format character divides for us alone.
FEW, MANY = (
    (
        [*TEXTS * 33, *["ein\u200bHaus"] * n],
        [*OURS * 33, *[[2, 3]] * n],
        [*OURS * 33, *[[3, 2]] * n],
    )
    for n in (1, 3)
)
ROWS = r"has {} rows; its tokenizer has {} tokens"
LIMIT = {"language": 0.5}
NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("vocabulary", (VOCAB, dict(reversed(IDS.items()))), None),
        ("vocabulary", ([*VOCAB, "Tor"], SPECIAL), r"has 5 tokens, the vocabulary 6.*2: 'ein' he"),
        ("vocabulary", (STRIPPED, {**IDS, "Tor": 5}), "2 ids differ, first 5: .* 'Tor' there"),
        ("vocabulary", (VOCAB, {**IDS, "Tor": 5}), "has 6 tokens, the vocabulary 5"),
        ("rows", (5, 5), None),
        ("rows", (8, 5, 8), None),
        *(("rows", (n, 5, *more), ROWS.format(n, 5)) for n, *more in ((6,), (4,), (4, 4), (7, 8))),
        ("tokens", (TEXTS, OURS, [tuple(ids) for ids in OURS], 1), None),
        ("tokens", (TEXTS, OURS, [[1] * len(ids) for ids in OURS], 1), r"100\.0 % .*, 0\.0 % of"),
        (
            *("tokens", (TEXTS, OURS, [OURS[0], [2, 3, 3], OURS[2]], 1)),
            r"'ein Haustür': \[2, 3, 3\], ours are \[2, 3, 4\]",
        ),
        ("tokens", (*FEW, 1), None),
        ("tokens", (*MANY, 1), "of 3 of 102 texts, more than the 2%"),
        ("loss", ([3.4, 3.3, 3.0, 2.7, 2.5], "peer"), None),
        *(
            ("loss", (losses, "peer"), "peer learns nothing: its loss was 3")
            for losses in ([3.47, 3.46, 3.48, 3.45, 3.46], [3, 4, 5], [3, NAN])
        ),
        ("loss", ([3.4], "peer"), "too few steps"),
        (
            "accepted",
            ({"length": 100, "language": 98}, {"length": 96, "language": 60}, 100, LIMIT),
            None,
        ),
        ("accepted", ({"length": 100}, {"length": 94}, 100, {}), "accepts .* of 100 pairs"),
        ("accepted", ({"length": 100}, {"length": 0}, 100, {}), "accepts .* of 100 pairs"),
        # However loose the limit.
        ("accepted", ({"language": 30}, {"language": 0}, 100, LIMIT), "accepts .* of 100 pairs"),
        ("found", (0.99999,), None),
        ("found", (0.5,), "50.0% of the peer's pairs"),
    ],
)
def test_checks(name, arguments, problem):
    check = getattr(same_work, f"check_{name}")
    if problem is None:
        check(*arguments)
    else:
        with pytest.raises(SystemExit, match=problem):
            check(*arguments)


def test_kinds_of_exceptions():
    for text, kind in (
        ("ein Haus", None),
        ("a\u200bb", "U+200B ZERO WIDTH SPACE (Cf)"),
        ("a\u00a0b", "U+00A0 NO-BREAK SPACE (Zs)"),
        ("x" * 76, "a long word"),
    ):
        assert same_work.exception_of(text) == kind


def test_the_sample_has_our_tokens_of_every_file(tmp_path):
    tokens = [*wordpiece_file.RESERVED_TOKENS, "ein", "Haus", "##tür", "a"]
    wordpiece_file.write(tmp_path / "vocab.txt", tokens)
    for name, rows in (("de", 50), ("fr", 1)):
        (tmp_path / "train" / name).mkdir(parents=True)
        lines = "".join(f"a{'!' * row}\tein Haustür\n" for row in range(rows))
        (tmp_path / "train" / name / f"{name}.tsv").write_text(lines, "utf-8")
    write_sample(tmp_path / "train", tmp_path / "vocab.txt", tmp_path / "sample.json")
    sample = json.loads((tmp_path / "sample.json").read_text("utf-8"))
    ids = dict(zip(sample["texts"], sample["ids"], strict=True))
    assert ids["ein Haustür"] == [101, 104, 105, 106, 102]
    assert ids["a!!"] == [101, 107, 100, 100, 102]
    assert sample["unknown"] == 100
    assert len(sample["texts"]) == 2 * (25 + 1)  # Every second of 50, and the only one.
