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


def test_equal_vocabularies_pass_in_any_order():
    same_work.check_vocabulary(VOCAB, dict(reversed(IDS.items())))


def test_a_tokenizer_without_the_vocabulary_is_refused():
    """What Transformers 5 makes of `vocab_file=`: its five special tokens and nothing else."""
    special = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    with pytest.raises(SystemExit, match=r"has 5 tokens, the vocabulary 6.*first 2: 'ein' here"):
        same_work.check_vocabulary([*VOCAB, "Tor"], special)


def test_shifted_ids_are_told_with_the_first():
    """As from a reader that strips `##tür ` to a token that it has already."""
    ours = [*VOCAB, "##tür\u3000", "Tor"]
    theirs = {**IDS, "Tor": 5}
    with pytest.raises(SystemExit) as caught:
        same_work.check_vocabulary(ours, theirs)
    assert str(caught.value) == (
        "the peer's tokenizer has 6 tokens, the vocabulary 7; "
        "2 ids differ, first 5: '##tür\\u3000' here, 'Tor' there"
    )


def test_more_tokens_than_ours_are_refused():
    with pytest.raises(SystemExit, match="has 6 tokens, the vocabulary 5"):
        same_work.check_vocabulary(VOCAB, {**IDS, "Tor": 5})


@pytest.mark.parametrize(("rows", "tokens", "asked"), [(5, 5, None), (8, 5, 8)])
def test_tables_with_a_row_a_token_pass(rows, tokens, asked):
    same_work.check_rows(rows, tokens, asked)


@pytest.mark.parametrize(
    ("rows", "tokens", "asked"), [(6, 5, None), (4, 5, None), (4, 5, 4), (7, 5, 8)]
)
def test_other_tables_are_refused(rows, tokens, asked):
    with pytest.raises(SystemExit, match=f"has {rows} rows; its tokenizer has {tokens} tokens"):
        same_work.check_rows(rows, tokens, asked)


def test_equal_tokens_pass():
    same_work.check_tokens(TEXTS, OURS, [tuple(ids) for ids in OURS], unknown=1)


def test_a_tokenizer_of_unknowns_is_refused():
    unknowns = [[1] * len(ids) for ids in OURS]
    with pytest.raises(SystemExit, match=r"100\.0 % of the peer's tokens are \[UNK\], 0\.0 % of"):
        same_work.check_tokens(TEXTS, OURS, unknowns, unknown=1)


def test_other_tokens_are_refused_with_an_example():
    theirs = [OURS[0], [2, 3, 3], OURS[2]]
    with pytest.raises(SystemExit, match=r"'ein Haustür': \[2, 3, 3\], ours are \[2, 3, 4\]"):
        same_work.check_tokens(TEXTS, OURS, theirs, unknown=1)


def test_known_exceptions_pass_while_they_are_few():
    texts, ours = [*TEXTS * 33, "ein\u200bHaus"], [*OURS * 33, [2, 3]]
    same_work.check_tokens(texts, ours, [*OURS * 33, [3, 2]], unknown=1)
    with pytest.raises(SystemExit, match="of 3 of 102 texts, more than the 2%"):
        many = [*texts, *texts[-1:] * 2]
        same_work.check_tokens(
            many, [*ours, [2, 3], [2, 3]], [*OURS * 33, *[[3, 2]] * 3], unknown=1
        )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ein Haus", None),
        ("a\u200bb", "U+200B ZERO WIDTH SPACE (Cf)"),
        ("a\u00a0b", "U+00A0 NO-BREAK SPACE (Zs)"),
        ("x" * 76, "a long word"),
    ],
)
def test_exceptions_are_named(text, kind):
    assert same_work.exception_of(text) == kind


def test_a_falling_loss_passes():
    same_work.check_loss([3.4, 3.3, 3.0, 2.7, 2.5], "peer")


@pytest.mark.parametrize("losses", [[3.47, 3.46, 3.48, 3.45, 3.46], [3, 4, 5], [3, float("nan")]])
def test_a_loss_that_does_not_fall_is_refused(losses):
    with pytest.raises(SystemExit, match="peer learns nothing: its loss was 3"):
        same_work.check_loss(losses, "peer")


def test_one_loss_says_nothing():
    with pytest.raises(SystemExit, match="too few steps"):
        same_work.check_loss([3.4], "peer")


def test_filters_that_accept_about_as_many_pass():
    same_work.check_accepted(
        {"length": 100, "language": 98}, {"length": 96, "language": 60}, 100, {"language": 0.5}
    )


@pytest.mark.parametrize("theirs", [{"length": 94}, {"length": 0}])
def test_filters_that_accept_others_are_refused(theirs):
    with pytest.raises(SystemExit, match="'length' accepts .* of 100 pairs, ours 100"):
        same_work.check_accepted({"length": 100}, theirs, 100, {})


def test_a_filter_that_accepts_nothing_is_refused_however_loose_the_limit():
    with pytest.raises(SystemExit, match="accepts 0 of 100 pairs"):
        same_work.check_accepted({"language": 30}, {"language": 0}, 100, {"language": 0.5})


def test_mined_pairs():
    same_work.check_found(0.99999)
    with pytest.raises(SystemExit, match="50.0% of the peer's pairs"):
        same_work.check_found(0.5)


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
