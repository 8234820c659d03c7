"""An encoder with what predicts masked tokens from it, and the batches that train both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from official.nlp.modeling import layers

from labse_tf.config import CMLM, Config
from labse_tf.data import streams
from labse_tf.data.neighbours import neighbour_batches, neighbour_files
from labse_tf.data.pretraining import pretraining_batches, source_files
from labse_tf.model.encoder import BertEncoder
from labse_tf.model.mlm_head import build_mlm_head, trained_variables
from labse_tf.model.slots import Slots, build_slots
from labse_tf.tokenization.protocol import Tokenizer


class MaskedModel(NamedTuple):
    """An encoder, the head over its tokens, and the slots of CMLM; None for MLM and TLM."""

    encoder: BertEncoder
    head: layers.MaskedLM
    slots: Slots | None = None

    @property
    def variables(self) -> list[tf.Variable]:
        return trained_variables(*self)

    @property
    def parts(self) -> dict[str, tf.Module]:
        """What checkpoints contain, by name."""
        return {name: part for name, part in self._asdict().items() if part is not None}

    def copy_heads(self, source: MaskedModel) -> None:
        """Copies head and slots, table included, where both models have them."""
        self.head.set_weights(source.head.get_weights())
        self.copy_slots(source)

    def copy_slots(self, source: MaskedModel) -> None:
        """Copies the slots where both models have them."""
        if self.slots is not None and source.slots is not None:
            self.slots.set_weights(source.slots.get_weights())


def add_heads(encoder: BertEncoder, config: Config) -> MaskedModel:
    """Returns `encoder` with what `pretrain.objective` needs, newly initialised."""
    head = build_mlm_head(config.encoder, encoder, compute=config.compute)
    slots = build_slots(slot_count(config), config.encoder, compute=config.compute)
    return MaskedModel(encoder, head, slots)


def slot_count(config: Config) -> int:
    """Returns the number of slots; 0 for MLM and TLM."""
    return config.pretrain.slots if config.pretrain.objective == CMLM else 0


def masked_batches(
    config: Config,
    tokenizer: Tokenizer,
    *,
    stage: int = 0,
    step: int = 0,
    part: streams.Part = streams.WHOLE,
) -> tf.data.Dataset:
    """Returns the batches of `pretrain.objective`; see `pretraining_batches`."""
    read = neighbour_batches if config.pretrain.objective == CMLM else pretraining_batches
    order = {"languages": config.languages, "seed": config.seed}
    return read(config.pretrain, tokenizer, **order, stage=stage, step=step, part=part)


def sources_of_batch(config: Config, batches: tf.data.Dataset) -> list[str]:
    """Returns the paths of the files from which the first of `masked_batches` was read."""
    find = neighbour_files if config.pretrain.objective == CMLM else source_files
    files = find(config.pretrain, config.languages)
    return [files[file].path for file in np.unique(next(iter(batches))["file"])]
