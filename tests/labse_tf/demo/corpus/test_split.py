"""Training and held-out pairs share no sentence, whatever goes in."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labse_tf.demo.corpus import write
from labse_tf.demo.corpus.write import SourcedPair, hash_key, is_held_out, sentence_key, split_pairs

WORDS = st.sampled_from(["a", "be", "cat", "dog", "Egg!", "fox", "7", "X"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
PAIRS = st.builds(
    SourcedPair,
    SENTENCES,
    SENTENCES,
    st.sampled_from(["de", "sw"]),
    st.sampled_from(["Django", "pycountry"]),
)


def test_keys():
    """Letters alone count; the hash is the same everywhere, and holds out 15 %."""
    same = [("Delete 5 pages?", "delete 7 pages"), ("Delete X", "Delete"), ("Xを削除", "を削除")]
    same += [("“Straße”", "STRASSE"), ("E-mail  address:", "e mail address"), ("ＡＢ", "ab")]
    for one, other in same:
        assert sentence_key(one) == sentence_key(other)
    for one, other in (("कि", "की"), ("XML", "ML"), ("cote", "côté"), ("ก่", "ก")):
        assert sentence_key(one) != sentence_key(other)
    assert hash_key("save the page now") == pytest.approx(0.2847978233510817, abs=1e-12)
    held = sum(is_held_out(f"save page number {n} {'z' * n}") for n in range(1, 500))
    assert 0.10 < held / 499 < 0.20
    # Short ones are not.
    assert not any(is_held_out(f"go to {'x' * n}") for n in range(300))
    assert not any(is_held_out(f"{'x' * n} a a a a") for n in range(300))


@given(st.lists(PAIRS, max_size=60), st.randoms())
def test_invariants(pairs, random):
    train, dev = split_pairs(pairs, {"Django"})
    shuffled = random.sample(pairs, len(pairs))
    assert split_pairs(shuffled, {"Django"}) == (train, dev)
    assert set(train) | set(dev) <= set(pairs)
    dev_keys = {sentence_key(text) for pair in dev for text in pair[:2]}
    train_keys = {sentence_key(text) for pair in train for text in pair[:2]}
    assert not dev_keys & train_keys
    assert all(pair.source == "Django" and is_held_out(sentence_key(pair.english)) for pair in dev)
    for side in ("english", "foreign"):
        seen = Counter((pair.language, sentence_key(getattr(pair, side))) for pair in dev)
        assert not seen or max(seen.values()) == 1


def test_names_are_only_held_back_where_a_message_is(monkeypatch):
    monkeypatch.setattr(write, "HELD_OUT_SHARE", 1.0)
    name = SourcedPair("the kingdom of the north", "Nordreich", "de", "pycountry")
    assert split_pairs([name], {"Django"}) == ([name], [])
    message = SourcedPair("The Kingdom of the North!", "Das Reich", "sw", "Django")
    assert split_pairs([name, message], {"Django"}) == ([], [message])
    # At most so many dev pairs, and the same in every language.
    monkeypatch.setattr(write, "MAX_DEV_PAIRS", 3)
    pairs = [
        SourcedPair(f"press the key {letter * 2}", f"{language} {letter * 3}", language, "Django")
        for letter in "abcdefgh"
        for language in ("de", "sw")
    ]
    train, dev = split_pairs(pairs, {"Django"})
    assert train == [] and Counter(pair.language for pair in dev) == {"de": 3, "sw": 3}
    assert len({pair.english for pair in dev}) == 3
