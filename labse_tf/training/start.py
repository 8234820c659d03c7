"""The start of a run from other weights (`--init`): as they are, stacked, or as a table."""

from __future__ import annotations

import dataclasses
import filecmp

import numpy as np
import tensorflow as tf

from labse_tf.config import BILSTM, Config
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.model.stacking import grow_layers, stack
from labse_tf.model.subwords import Subwords
from labse_tf.model.vocabulary_growth import copy_grown, grow_vocabulary
from labse_tf.tokenization.vocabulary_readers import require_wordpieces
from labse_tf.training.masked_model import MaskedModel, add_heads
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.initial_weights import restore, write_report
from labse_tf.training.runs.run_dir import Origin, RunDir
from vocab import wordpiece_file


def start_from(
    init: Origin,
    encoder,
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    *,
    model: MaskedModel | None = None,
    subwords: Subwords | None = None,
) -> None:
    """Initialises `encoder` and the heads of `model` from `init`; fewer layers are stacked.

    Without layers, `init` may have another vocabulary; layers of BERT on it begin as the identity,
    those of an LSTM at random. With layers, the run's vocabulary may have further tokens.

    Args:
      init: the origin.
      encoder: what to initialise.
      config: that of the run.
      run_dir: for `init.tsv`.
      strategy: the run's strategy, in whose scope this is called.
      model: `encoder` with its heads, if it has any.
      subwords: those of an encoder without layers.

    Raises:
      InputError: if weights are missing or do not fit, or an encoder with layers would have to be
        stacked and get new tokens at once.
    """
    layers = init.encoder.num_layers
    stacked = layers < len(encoder.transformer_layers)
    grown = init.encoder.vocab_size != config.encoder.vocab_size or not filecmp.cmp(
        init.vocab_file, run_dir.vocab_file, shallow=False
    )
    under_lstm = not layers and config.encoder.network == BILSTM
    source = encoder
    if stacked or grown or subwords or under_lstm:
        sizes = init.encoder if under_lstm else config.encoder
        sizes = dataclasses.replace(sizes, vocab_size=init.encoder.vocab_size)
        source = build_encoder(sizes, num_layers=layers)
    heads = model
    if model is not None and source is not encoder:
        # A table on its own has no heads.
        heads = add_heads(source, config) if layers else None
    fates = restore(init, *(heads or (source,)))
    if strategy.extended.should_checkpoint:
        variables = (model or encoder).variables if source is encoder else source.variables
        write_report(fates, init, variables, run_dir)
    if source is encoder:
        return
    if grown and layers:
        if stacked:
            raise InputError(
                f"--init {init.path} has {layers} layers and fewer tokens than the vocabulary",
                remedy="train with the new tokens first, and stack that run",
            )
        table = _grow(source, init, run_dir)
        copy_grown(source, encoder, table)
        if heads is not None:
            copy_grown(heads.head, model.head, table)
            model.copy_slots(heads)
        return
    if stacked and layers:
        stack(source, encoder)
        if heads is not None:
            model.copy_heads(heads)
        return
    table = source.get_embedding_table().numpy()
    if grown:
        table = _grow(source, init, run_dir)
    if stacked:
        special = load_tokenizer(run_dir).special_tokens
        unread = (special["start_of_sequence_id"], special["end_of_segment_id"])
        grow_layers(table, encoder, unread=unread)
    else:
        encoder.get_embedding_table().assign(subwords.unfold(table) if subwords else table)


def _grow(source, init: Origin, run_dir: RunDir) -> np.ndarray:
    """Returns the table of `source`, an encoder of `init`, with the tokens of the run."""
    files = (init.vocab_file, run_dir.vocab_file)
    vocabularies = [wordpiece_file.read(file) for file in files]
    for tokens, file in zip(vocabularies, files, strict=True):
        require_wordpieces(tokens, file, what="--init with another vocabulary")
    table = source.get_embedding_table().numpy()
    return grow_vocabulary(table, *vocabularies, mean=bool(init.encoder.num_layers))
