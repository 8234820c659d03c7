"""Runs with an older vocabulary go on, and say what other programs read."""

from __future__ import annotations

import dataclasses

from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from labse_tf.training.runs.run_dir import open_or_create
from vocab import wordpiece_file


def test_a_run_with_an_older_vocabulary(tiny_config, tmp_path, caplog):
    tokens = wordpiece_file.read(tiny_config.tokenizer.vocab_file)
    tokens[110:112] = ["##\u00a0", "\u3000"]
    path = tmp_path / "vocab.txt"
    wordpiece_file.write(path, tokens)
    tokenizer = dataclasses.replace(tiny_config.tokenizer, vocab_file=str(path))
    config = dataclasses.replace(tiny_config, tokenizer=tokenizer)
    for _ in range(2):  # New, and to be resumed.
        with open_or_create(tmp_path / "run", config) as run_dir:
            assert wordpiece_file.read(run_dir.vocab_file) == tokens
            # TF Text's words, as when its models were trained: the spaces are letters.
            ids = WordPieceTokenizer(run_dir.vocab_file, max_bytes_per_word=100)(["a\u00a0.\u3000"])
            assert ids.to_list() == [
                [tokens.index(piece) for piece in ("a", "##\u00a0", ".", "\u3000")]
            ]
        (run_dir.checkpoints).mkdir(exist_ok=True)
    warning = f"{path}:111: the token '##\\xa0' and 1 more are read differently by programs"
    assert caplog.text.count(warning) == 2


def test_no_warning_of_a_clean_vocabulary(tiny_config, tmp_path, caplog):
    with open_or_create(tmp_path / "run", tiny_config):
        assert "strip lines" not in caplog.text
