"""`labse translate` with the translators of contrastive data selection."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from labse_tf.cli.main import main
from labse_tf.systems.cds.batches import encode_pairs
from labse_tf.systems.cds.translators import TransformerTranslator
from labse_tf.systems.laser.translators import open_translator
from labse_tf.tokenization.wordpiece import join_wordpieces

pytestmark = pytest.mark.slow

TEXTS = ["cat and house.", "", "wolf and moon, horse and bread."]


def greedy(translator, text, language, most):
    """Token by token, each from the logits of all before it: no cache, no search.

    The untrained model never ends a text, so a beam of one does the same.
    """
    columns = [tf.constant([value]) for value in (text, "", language)]
    source = encode_pairs(translator._tokenizer, *columns, [40])["inputs"]
    found = []
    while len(found) < most:
        # The last target is what is asked for; the model shifts targets by one.
        inputs = {"inputs": source, "targets": tf.constant([[*found, 1]])}
        found.append(int(tf.argmax(translator._translator(inputs)[0, -1])))
        if found[-1] == translator._end:
            break
    tokens = translator._tokenizer.tokens
    return join_wordpieces(tokens[one] for one in found if one not in translator._unwritten)


@pytest.mark.parametrize("language", ["de", "ja"])
def test_a_beam_of_one_takes_the_likeliest_tokens(cds_run, language):
    translator = open_translator(cds_run, beam_size=1)
    assert isinstance(translator, TransformerTranslator)
    for text in (TEXTS[0], TEXTS[2]):
        tokens = [translator._tokenizer(tf.constant([one])) for one in (language, text)]
        # What the Model Garden allows: the source with its tag and special tokens, and 50 more.
        most = sum(int(one.row_lengths()[0]) for one in tokens) + 3 + 50
        (found,) = translator.translate([text], language)
        assert found == greedy(translator, text, language, most)


def test_the_command(cds_run, tmp_path):
    (tmp_path / "en.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    command = ["translate", str(cds_run), str(tmp_path / "en.txt"), "--to", "de"]
    assert main([*command, "--out", str(tmp_path / "de.txt")]) == 0
    assert main([*command[:-1], "zh", "--out", str(tmp_path / "zh.txt")]) == 2
    lines = (tmp_path / "de.txt").read_text("utf-8").split("\n")
    assert len(lines) == 4 and lines[1] == lines[3] == ""
    wide = open_translator(cds_run, beam_size=4).translate(TEXTS[::-1], "de")
    np.testing.assert_array_equal(wide[::-1], lines[:3])
