"""Translates texts with the models of data selection."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.systems.cds.config import CdsRun
from labse_tf.systems.cds.scorer import load_translator
from labse_tf.systems.laser.translators import LENGTH_PENALTY, Translator
from labse_tf.training.runs.run_dir import RunDir

# A translation has at most this many tokens more than its source: the Model Garden's rule.
_MORE_TOKENS = 50


class TransformerTranslator(Translator):
    """The translator of `labse corpus train-cds`, from English."""

    def __init__(self, run_dir: RunDir, *, name: str, beam_size: int) -> None:
        config = run_dir.read_config(CdsRun)
        super().__init__(run_dir, longest=config.cds.bucket_lengths[-1], beam_size=beam_size)
        self.languages = [code for code in config.languages if code != "en"]
        self._translator = load_translator(
            run_dir,
            name,
            len(self._tokenizer.tokens),
            eos_id=self._end,
            beam_size=beam_size,
            alpha=LENGTH_PENALTY,
            extra_decode_length=_MORE_TOKENS,
        )

    def _inputs(self, tokens, language, length):
        tags = self._tokenizer(tf.fill([tokens.nrows()], language))
        length += int(tags.row_lengths()[0]) + 1
        packed = self._tokenizer.pack([tags, tokens], length)["input_word_ids"]
        return packed, tf.zeros_like(packed)

    def _search(self, source, language, most):
        return self._translator({"inputs": source}, training=False)["outputs"]
