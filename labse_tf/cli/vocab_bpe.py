"""`labse vocab bpe`: learns byte-pair encodings, in place of WordPieces."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import INPUTS, OVERWRITE, VOCABULARY, add_options

EXAMPLES = """examples:
  labse vocab bpe clean --out bpe.txt
  labse vocab bpe clean/bitext --out bpe.txt --vocab-size 16000

Input is monolingual text, bitext (both sides are counted) or clean shards, in any format of
docs/files.md. The words of each language are weighted as by `labse vocab build`, and SentencePiece
learns from them; its defaults here are LASER's size and the paper's exponent. All distinct words
are held in memory: for corpora that do not fit, learn from a part.

The file is used like any vocabulary (tokenizer.vocab_file). A model with it has no Hugging Face
form, and cannot be restricted to some languages."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        INPUTS,
        VOCABULARY.format(size=50_000),
        """
        --character-coverage X=0.9995: share of the characters of the weighted text to have pieces
          for, from 0.98; rarer ones become [UNK]
        """,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from beam_pipelines.reading.readers import read_texts
    from labse_tf.errors import InputError
    from labse_tf.files.corpus_files import find_corpus_files
    from labse_tf.files.outputs import check_free_file, whole_file
    from labse_tf.progress import Progress
    from vocab import bpe, wordpiece_file

    for name, least in (("smoothing_exponent", 0), ("character_coverage", 0.98)):
        if not least <= getattr(args, name) <= 1:
            option = name.replace("_", "-")
            raise InputError(f"--{option} is {getattr(args, name)}", remedy=f"give {least} to 1")
    reserved = len(wordpiece_file.RESERVED_TOKENS)
    if args.vocab_size <= reserved:
        remedy = f"{reserved} tokens are reserved: give more"
        raise InputError(f"--vocab-size is {args.vocab_size}", remedy=remedy)
    check_free_file(args.out, overwrite=args.overwrite)
    with Progress("count words", unit="text") as progress:
        counts = bpe.count_words(progress.each(read_texts(find_corpus_files(args.inputs))))
    if not any(counts.values()):
        raise InputError("no words are there to learn from", remedy="add text")
    try:
        words = bpe.smooth(counts, args.smoothing_exponent)
        tokens = bpe.learn(words, args.vocab_size, coverage=args.character_coverage)
    except ValueError as error:
        raise InputError(
            f"--vocab-size {args.vocab_size} is too small for the characters ({error})",
            remedy="raise it or lower --character-coverage",
        ) from error
    with whole_file(args.out, overwrite=args.overwrite) as partial:
        wordpiece_file.write(partial, tokens)
    print(f"{args.out}: {len(tokens)} tokens of {len(words)} distinct words")
