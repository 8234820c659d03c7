"""Trains a translator on the noisy corpus, then tunes it on trusted pairs; both are kept."""

from __future__ import annotations

import tensorflow as tf
import tf_keras
from official.nlp.modeling.models import seq2seq_transformer

from labse_tf.data import streams, texts
from labse_tf.data.features import Features
from labse_tf.data.pairs import BATCHES_PER_WINDOW, smallest_bucket, sorted_windows
from labse_tf.data.record_counts import language_weights
from labse_tf.files.corpus_files import BITEXT
from labse_tf.model.encoder import replayable_dropout
from labse_tf.systems.cds.config import CdsRun, TranslatorConfig
from labse_tf.tokenization.protocol import Tokenizer
from labse_tf.training.distribution import sum_over_replicas
from labse_tf.training.fit import Stage, fit
from labse_tf.training.objectives import Objective
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.run_dir import RunDir

STAGES = NOISY, TRUSTED = "noisy", "trusted"
TRANSLATION_FEATURES: Features = {
    name: tf.TensorSpec([None, None], tf.int32) for name in ("inputs", "targets")
}
# Special tokens of `[CLS] tag [SEP] source [SEP]` and `target [SEP]`.
_SOURCE_SPECIALS, _TARGET_SPECIALS = 3, 1


def train(config: CdsRun, run_dir: RunDir, strategy: tf.distribute.Strategy) -> None:
    """Trains both translators, or resumes where the run was stopped.

    Their checkpoints are in `checkpoints/noisy` and `checkpoints/trusted`. The second translator
    starts from the weights of the first, with a fresh optimiser.
    """
    settings, tokenizer = config.cds, load_tokenizer(run_dir)
    with strategy.scope(), replayable_dropout():
        tf_keras.utils.set_random_seed(config.seed)
        translator = build_translator(settings.translator, len(tokenizer.tokens))
    for number, name in enumerate(STAGES):

        def batches(step: int, name: str = name) -> tf.data.Dataset:
            return translation_batches(config, tokenizer, name, step)

        tf_keras.utils.set_random_seed(config.seed + number)
        stage = Stage(
            description=f"train the translator on {name} pairs",
            steps=getattr(settings, f"{name}_steps"),
            batch_size=settings.batch_size,
            optimizer=getattr(settings, f"{name}_optimizer"),
            loop=settings.loop,
            checkpoints=run_dir.checkpoints / name,
            number=number,
        )
        fit(TranslatorLoss(translator), batches, stage, run_dir, strategy)


def build_translator(
    config: TranslatorConfig, vocab_size: int, **search
) -> seq2seq_transformer.Seq2SeqTransformer:
    """Returns the Model Garden's Transformer encoder-decoder, with its variables created.

    Called with `{"inputs": source, "targets": target}`, int32 `[batch, length]` each, padded with
    0, it returns the logits of each target token given those before it: float32 `[batch, target
    length, vocab_size]`. The target ends in [SEP] and has no start token: the model shifts it.

    Without targets, it translates by beam search; `search` has the Model Garden's options for that.
    """
    rates = ("dropout_rate", "attention_dropout_rate", "intermediate_dropout")
    common = dict.fromkeys(rates, config.dropout)
    common["num_attention_heads"] = config.num_attention_heads
    common["intermediate_size"] = config.intermediate_size
    encoder = seq2seq_transformer.TransformerEncoder(num_layers=config.encoder_layers, **common)
    decoder = seq2seq_transformer.TransformerDecoder(num_layers=config.decoder_layers, **common)
    translator = seq2seq_transformer.Seq2SeqTransformer(
        vocab_size=vocab_size,
        embedding_width=config.hidden_size,
        dropout_rate=config.dropout,
        encoder_layer=encoder,
        decoder_layer=decoder,
        **search,
    )
    translator({name: tf.ones((1, 4), tf.int32) for name in TRANSLATION_FEATURES})
    return translator


class TranslatorLoss(Objective):
    """Cross-entropy of the target tokens, averaged over those of the global batch."""

    def __init__(self, translator) -> None:
        super().__init__({"translator": translator}, features=TRANSLATION_FEATURES)
        self._translator = translator

    def loss(self, batch, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        targets = batch["targets"]
        logits = self._translator(batch, training=True)
        is_token = tf.cast(targets != 0, tf.float32)
        hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == targets, tf.float32)
        total = sum_over_replicas([tf.reduce_sum(is_token)])[0]
        loss = -tf.reduce_sum(token_log_likelihoods(logits, targets))
        return loss / total, tf.reduce_sum(hits * is_token) / total


def token_log_likelihoods(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns log P(target token | source, target tokens before it), in nats, 0 at padding.

    Float32 `[batch, length, vocab_size]`, int32 `[batch, length]` -> float32 `[batch, length]`.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    return -losses * tf.cast(targets != 0, tf.float32)


def translation_batches(
    config: CdsRun, tokenizer: Tokenizer, name: str, step: int = 0
) -> tf.data.Dataset:
    """Returns endless batches of `encode_pairs`, of `cds.noisy` or `cds.trusted` by `name`."""
    settings, place = config.cds, streams.position(step, config.seed)
    inputs = getattr(settings, name)
    files = sorted(texts.find_files(inputs, BITEXT, config.languages, key=f"cds.{name}"))
    weights = language_weights(files, settings.language_exponent)
    drawn = streams.drawn_of(weights, place.start * settings.batch_size)
    by_language = streams.language_streams(files, seed=place.seed, drawn=drawn, part=place.part)
    labelled = {
        language: tf.data.Dataset.zip((stream, tf.data.Dataset.from_tensors(language).repeat()))
        for language, stream in by_language.items()
    }
    records = streams.mix(labelled, weights, seed=place.seed)
    windows = records.batch(settings.batch_size * BATCHES_PER_WINDOW, drop_remainder=True)

    def measure(window):
        serialized, language = window
        columns = (*texts.parse(BITEXT, serialized), language)
        # Within a script, bytes estimate tokens well, without a tokeniser.
        return columns, tf.maximum(*(tf.strings.length(side) for side in columns[:2]))

    def encode(source, target, language):
        return encode_pairs(tokenizer, source, target, language, settings.bucket_lengths)

    batches = sorted_windows(windows, measure, settings.batch_size, skip=place.skip)
    return batches.map(encode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)


def encode_pairs(
    tokenizer: Tokenizer,
    source: tf.Tensor,
    target: tf.Tensor,
    language: tf.Tensor,
    bucket_lengths: list[int],
) -> dict[str, tf.Tensor]:
    """Turns `[batch]` strings into ids of one length, the smallest bucket that holds them.

    `inputs` are `[CLS] tag [SEP] source [SEP]`, `targets` are `target [SEP]`, int32 `[batch,
    length]` each, padded with 0. The tag is the target's language code, tokenised like text: there
    are fewer reserved tokens than languages. Tokens beyond the last bucket are cut off.
    """
    source, target, tag = tokenizer(source), tokenizer(target), tokenizer(language)
    longest = tf.maximum(
        tf.reduce_max(source.row_lengths() + tag.row_lengths()) + _SOURCE_SPECIALS,
        tf.reduce_max(target.row_lengths()) + _TARGET_SPECIALS,
    )
    length = smallest_bucket(longest, bucket_lengths)
    inputs = tokenizer.pack([tag, source], length)["input_word_ids"]
    end = tf.fill([target.nrows(), 1], tokenizer.special_tokens["end_of_segment_id"])
    targets = tf.concat([target[:, : length - _TARGET_SPECIALS], end], axis=1)
    shape = tf.stack([target.nrows(), tf.cast(length, tf.int64)])
    return {"inputs": inputs, "targets": targets.to_tensor(shape=shape)}
