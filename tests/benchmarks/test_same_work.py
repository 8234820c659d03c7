"""A peer that does other work than ours is no peer: each check passes the same and fails others."""

import json

import pytest

from benchmarks.peers import same_work
from benchmarks.peers.tokens import write_sample
from vocab import wordpiece_file

VOCAB = ["[PAD]", "[UNK]", "ein", "Haus", "##tür"]
IDS = {token: number for number, token in enumerate(VOCAB)}
TEXTS = ["ein Haus", "ein Haustür", "Haus Haus ein"]
OURS = [[2, 3], [2, 3, 4], [3, 3, 2]]


def refuse(check, *arguments, match):
    with pytest.raises(SystemExit, match=match):
        check(*arguments)


SPECIAL = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}


@pytest.mark.parametrize(
    ("ours", "theirs", "problem"),
    [
        (VOCAB, dict(reversed(IDS.items())), None),
        # As Transformers 5 makes of `vocab_file=`: its five special tokens and nothing else.
        ([*VOCAB, "Tor"], SPECIAL, r"has 5 tokens, the vocabulary 6.*first 2: 'ein' here"),
        # As from a reader that strips `##tür ` to a token that it has already.
        (
            [*VOCAB, "##tür\u3000", "Tor"],
            {**IDS, "Tor": 5},
            "2 ids differ, first 5: .* 'Tor' there",
        ),
        (VOCAB, {**IDS, "Tor": 5}, "has 6 tokens, the vocabulary 5"),
    ],
)
def test_vocabularies(ours, theirs, problem):
    if problem:
        refuse(same_work.check_vocabulary, ours, theirs, match=problem)
    else:
        same_work.check_vocabulary(ours, theirs)


def test_tables_have_a_row_a_token():
    same_work.check_rows(5, 5)
    same_work.check_rows(8, 5, 8)
    for rows, tokens, asked in [(6, 5, None), (4, 5, None), (4, 5, 4), (7, 5, 8)]:
        problem = f"has {rows} rows; its tokenizer has {tokens} tokens"
        refuse(same_work.check_rows, rows, tokens, asked, match=problem)


def test_tokens():
    same_work.check_tokens(TEXTS, OURS, [tuple(ids) for ids in OURS], unknown=1)
    unknowns = [[1] * len(ids) for ids in OURS]
    problem = r"100\.0 % of the peer's tokens are \[UNK\], 0\.0 % of"
    refuse(same_work.check_tokens, TEXTS, OURS, unknowns, 1, match=problem)
    others = [OURS[0], [2, 3, 3], OURS[2]]
    problem = r"'ein Haustür': \[2, 3, 3\], ours are \[2, 3, 4\]"
    refuse(same_work.check_tokens, TEXTS, OURS, others, 1, match=problem)


def test_known_exceptions_pass_while_they_are_few():
    texts, ours = [*TEXTS * 33, "ein\u200bHaus"], [*OURS * 33, [2, 3]]
    same_work.check_tokens(texts, ours, [*OURS * 33, [3, 2]], unknown=1)
    many = (texts + texts[-1:] * 2, ours + [[2, 3]] * 2, OURS * 33 + [[3, 2]] * 3, 1)
    refuse(same_work.check_tokens, *many, match="of 3 of 102 texts, more than the 2%")
    for text, kind in (
        ("ein Haus", None),
        ("a\u200bb", "U+200B ZERO WIDTH SPACE (Cf)"),
        ("a\u00a0b", "U+00A0 NO-BREAK SPACE (Zs)"),
        ("x" * 76, "a long word"),
    ):
        assert same_work.exception_of(text) == kind


def test_losses():
    same_work.check_loss([3.4, 3.3, 3.0, 2.7, 2.5], "peer")
    for losses in ([3.47, 3.46, 3.48, 3.45, 3.46], [3, 4, 5], [3, float("nan")]):
        problem = "peer learns nothing: its loss was 3"
        refuse(same_work.check_loss, losses, "peer", match=problem)
    refuse(same_work.check_loss, [3.4], "peer", match="too few steps")


def test_filters_and_mined_pairs():
    known = {"language": 0.5}
    ours, theirs = {"length": 100, "language": 98}, {"length": 96, "language": 60}
    same_work.check_accepted(ours, theirs, 100, known)
    for accepted, limits, ours in (
        ({"length": 94}, {}, {"length": 100}),
        ({"length": 0}, {}, {"length": 100}),
        ({"language": 0}, known, {"language": 30}),  # However loose the limit.
    ):
        refuse(
            same_work.check_accepted, ours, accepted, 100, limits, match="accepts .* of 100 pairs"
        )
    same_work.check_found(0.99999)
    refuse(same_work.check_found, 0.5, match="50.0% of the peer's pairs")


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
