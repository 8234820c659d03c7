"""Restricts a model to some languages: to the pieces that they need, and the rows of these."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence

import tensorflow as tf

from export.source import Source, describe_vocabulary
from labse_tf.errors import InputError
from labse_tf.languages import LANGUAGES
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head
from vocab.pruning import NeededPieces, kept_ids, pieces_of_scripts
from vocab.wordpiece import WordPiece

# The Unicode scripts of languages that mix several.
_SCRIPTS = {"Jpan": ("Hani", "Hira", "Kana"), "Kore": ("Hang", "Hani")}


def count_pieces(
    source: Source, languages: Collection[str], texts: Iterable[tuple[str, str]]
) -> NeededPieces:
    """Returns the pieces of the `texts`, (language, text), that are in one of `languages`.

    Raises:
      InputError: if a language has no text.
    """
    wordpiece = WordPiece(source.tokens, max_bytes_per_word=source.max_bytes_per_word)
    counter, seen = NeededPieces(wordpiece), set()
    for language, text in texts:
        if language in languages:
            seen.add(language)
            counter.add(text)
    if missing := sorted(set(languages) - seen):
        raise InputError(
            f"there is no text in {', '.join(missing)}",
            remedy="name files of all --languages, <lang>.txt or <lang>.tsv",
        )
    return counter


def pieces_by_script(source: Source, languages: Iterable[str]) -> set[str]:
    """Returns all pieces that are written in the scripts of `languages`."""
    codes = (LANGUAGES[language].script for language in languages)
    scripts = {script for code in codes for script in _SCRIPTS.get(code, (code,))}
    return pieces_of_scripts(source.tokens, sorted(scripts))


def restrict(source: Source, languages: Sequence[str], pieces: Collection[str]) -> Source:
    """Returns the model with a vocabulary of `pieces` and of their characters; see `kept_ids`."""
    kept = kept_ids(source.tokens, pieces)
    config = dataclasses.replace(source.config, vocab_size=len(kept))
    encoder = build_encoder(config)
    _take(encoder, source.encoder, kept)
    head = None
    if source.head is not None:
        head = build_mlm_head(config, encoder)
        _take(head, source.head, kept)
    return dataclasses.replace(
        source,
        encoder=encoder,
        head=head,
        config=config,
        tokens=[source.tokens[number] for number in kept],
        languages=sorted(languages),
        kept_of=describe_vocabulary(source.tokens),
    )


def _take(model: tf.Module, whole: tf.Module, kept: list[int]) -> None:
    """Assigns the weights of `whole`; of weights with one row per token, only the rows `kept`."""
    for ours, theirs in zip(model.variables, whole.variables, strict=True):
        ours.assign(theirs if ours.shape == theirs.shape else tf.gather(theirs, kept))
