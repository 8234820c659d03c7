"""Pairs of old languages beside those of new ones, so that the old are not forgotten."""

from __future__ import annotations

import dataclasses

import pytest

from labse_tf.data.pairs import pair_batches
from labse_tf.files.textio import read_pairs


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("share", [0.25, 0.8])
def test_old_languages_are_replayed(tmp_path, tiny_config, tokenizer, bitext_dir, share, in_memory):
    """Thai is new; Japanese takes its share, and the Thai pairs of the old corpus none."""
    new = tmp_path / "new"
    new.mkdir()
    (_, _, thai), *_ = pairs = list(read_pairs(bitext_dir / "th.tsv"))
    lines = [f"{english}\t{thai}\n" for _, english, _ in pairs]
    (new / "th.tsv").write_text("".join(lines), "utf-8")
    settings = dataclasses.replace(
        tiny_config.train,
        bitext=[str(new)],
        replay=[str(bitext_dir)],
        replay_share=share,
        batch_size=8,
        cache_tokens=in_memory,
    )
    batches = pair_batches(settings, tokenizer, languages=["ja", "th"], seed=1)(0)
    rows = [
        [tokenizer.tokens[token] for token in row if token > 103]
        for batch in batches.take(60)
        for row in batch["target"]["input_word_ids"].numpy()
    ]
    found = [row for row in rows if any("\u0e00" <= piece[-1] < "\u0e80" for piece in row)]
    assert len(found) / len(rows) == pytest.approx(1 - share, abs=0.08)
    assert len(set(map(tuple, found))) == 1
