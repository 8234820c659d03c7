"""Weights, memory and operations of a stage of training.

The memory of activations is counted in two ways. Where XLA compiles the step, it is that of
Korthikanti et al. 2022 (arXiv 2205.05198, equation 2), with the widths of the feed-forward layer
and of the others told apart. Where TensorFlow runs one operation after another, it is what these
keep for the backward pass, operation by operation.
"""

from __future__ import annotations

from dataclasses import dataclass

from labse_tf.config import ADAGRAD, EncoderConfig
from labse_tf.config.planning.devices import Device
from labse_tf.config.planning.phases import PRETRAIN, Phase

_FLOAT = 4  # Bytes.
_TYPES = 2
# Similarities, their loss, and their gradients.
_COPIES_OF_SIMILARITIES = 3


@dataclass(frozen=True)
class Memory:
    """Bytes of a replica, by part."""

    weights: float
    optimizer: float
    gradients: float
    activations: float
    loss: float
    runtime: float

    @property
    def total(self) -> float:
        return sum(vars(self).values())


def count_weights(encoder: EncoderConfig, layers: int) -> tuple[int, int]:
    """Returns the weights of the embedding table, and all others of a BERT with its pooler."""
    width, inner = encoder.hidden_size, encoder.intermediate_size
    table = encoder.vocab_size * width
    if not layers:
        return table, 0
    norm = 2 * width
    dense = width * width + width
    layer = 4 * dense + 2 * norm + width * inner + inner + inner * width + width
    embeddings = (encoder.max_positions + _TYPES) * width + norm
    return table, layers * layer + embeddings + dense


def _head_weights(phase: Phase) -> int:
    """Those of the MLM head, whose output weights are the table."""
    if phase.section != PRETRAIN:
        return 0
    width = phase.encoder.hidden_size
    return width * width + 3 * width + phase.encoder.vocab_size


def memory_of(phase: Phase, device: Device, precision: str) -> Memory:
    """Returns the memory that a step needs at its peak, at full length."""
    table, others = count_weights(phase.encoder, phase.layers)
    others += _head_weights(phase)
    by_row = phase.optimizer.table_update == ADAGRAD
    return Memory(
        weights=_FLOAT * (table + others),
        optimizer=_FLOAT * (2 * others + (phase.encoder.vocab_size if by_row else 2 * table)),
        gradients=_FLOAT * _gradients(phase, device, table, others),
        activations=_activations(phase, device, precision),
        loss=_loss(phase, device),
        runtime=device.runtime,
    )


def _gradients(phase: Phase, device: Device, table: int, others: int) -> float:
    """Returns how many numbers all gradients have that are held at once."""
    # Clipping makes a second copy, unless XLA joins it with the update; chunks add theirs to a sum.
    copies = (1 if device.compiles else 2) + bool(phase.chunk)
    if phase.lazy:
        rows = min(phase.encoder.vocab_size, phase.tokens + phase.masked + phase.candidates)
        return copies * (others + rows * phase.encoder.hidden_size)
    # The table is read twice by MLM, as input and as output: two gradients and their sum.
    of_table = copies + (2 if phase.section == PRETRAIN and not device.compiles else 0)
    return copies * others + of_table * table


def _activations(phase: Phase, device: Device, precision: str) -> float:
    tokens = phase.tokens_at_once
    width, inner = phase.encoder.hidden_size, phase.encoder.intermediate_size
    if not phase.layers:
        # Each token's vector, and its gradient.
        return 2 * _FLOAT * width * tokens
    attention = phase.encoder.num_attention_heads * phase.length
    size = 2 if precision == "bfloat16" else _FLOAT
    if device.compiles:
        # Masks of dropout are bytes.
        numbers = 8 * width + 2 * inner + 2 * attention
        masks = 2 * width + attention
        layer = size * numbers + masks
    else:
        # Of width: input, query, key, value, context, and twice mask, sum and layer norm. Inner:
        # input, tanh, two factors, product and output of the activation. Attention: softmax, mask,
        # product. Layer norms are float32.
        layer = size * (8 * width + 6 * inner + 3 * attention) + _FLOAT * 2 * width
    if phase.rematerialized:
        return (layer + size * width * phase.layers) * tokens
    return layer * phase.layers * tokens


def _loss(phase: Phase, device: Device) -> float:
    if phase.section == PRETRAIN:
        # Logits and their gradient; where nothing is fused, also shifted and as probabilities.
        copies = 2 if device.compiles else 4
        return _FLOAT * copies * phase.masked_at_once * phase.candidates
    # All embeddings of the global batch and their gradients; similarities of one's own to them.
    gathered = 2 * phase.sides * phase.batch * phase.encoder.hidden_size
    similarities = _COPIES_OF_SIMILARITIES * phase.sides * phase.local * phase.batch
    return _FLOAT * (gathered + similarities)


def operations_of(phase: Phase) -> float:
    """Returns the floating-point operations of a step of one replica, forward and backward.

    Six for each weight of a matrix and token (two forward, four backward), and twelve for each
    token, column and token that it attends to. Chunks of pairs, and layers that are computed again,
    add a forward pass each.
    """
    width, inner = phase.encoder.hidden_size, phase.encoder.intermediate_size
    weights = phase.layers * (4 * width * width + 2 * width * inner)
    attention = 2 * phase.layers * phase.length * width
    passes = 2 + phase.forward_passes
    encoder = 2 * passes * (weights + attention) * phase.tokens
    head = 6 * phase.masked * width * (width + phase.candidates)
    return encoder + head
