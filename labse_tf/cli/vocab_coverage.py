"""`labse vocab coverage`: measures how well a vocabulary covers each language."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import INPUTS, OVERWRITE, WORD_LIMIT, add_options, word_limit

EXAMPLES = """examples:
  labse vocab coverage vocab.txt clean/monolingual
  labse vocab coverage vocab.txt my/text my/pairs --out coverage.tsv --plot coverage.png
  labse vocab coverage vocab.txt my/text/th.txt --max-bytes-per-word 100

Input is monolingual text, bitext (both sides are measured, English as en) or clean shards. The
table goes to stdout, the language that loses most of its text first:

  lost %           characters in words that became [UNK], of all characters in words
  [UNK] %          [UNK] among the tokens
  chars/token      characters per token, without [UNK]
  tokens/sentence  without [CLS] and [SEP]
  cut %            sentences over the maximum length, of all sentences
  too long %       words over the byte limit, of all words"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        "vocab VOCAB: vocabulary file, one token per line",
        INPUTS,
        """
        --out FILE.tsv: write all counts and rates to this file
        --plot FILE.png: plot them (.png, .svg or .pdf)
        --max-length N=128: maximum number of tokens per sentence, including [CLS] and [SEP]
        """,
        WORD_LIMIT,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.coverage.plot import write_plot
    from labse_tf.coverage.table import format_table, format_tsv
    from labse_tf.files.outputs import check_free, plot_format, whole_file

    for path in filter(None, (args.out, args.plot)):
        check_free(path, overwrite=args.overwrite)
    picture = plot_format(args.plot) if args.plot else ""
    coverage = _measure(args)
    if args.out:
        with whole_file(args.out, overwrite=args.overwrite) as partial:
            partial.write_text(format_tsv(coverage), "utf-8")
    if args.plot:
        with whole_file(args.plot, overwrite=args.overwrite) as partial:
            write_plot(coverage, partial, file_format=picture)
    print(format_table(coverage))


def _measure(args: argparse.Namespace) -> dict:
    from beam_pipelines.reading.readers import read_texts
    from labse_tf.errors import InputError
    from labse_tf.files.corpus_files import find_corpus_files
    from labse_tf.progress import Progress
    from labse_tf.tokenization.vocabulary_readers import require_wordpieces, warn_of_misread
    from vocab import wordpiece_file
    from vocab.coverage import CoverageMeter
    from vocab.wordpiece import WordPiece

    limit = word_limit(args)
    if args.max_length < 3:
        raise InputError(f"--max-length is {args.max_length}", remedy="give 3 or more")
    tokens = wordpiece_file.read(args.vocab)
    require_wordpieces(tokens, args.vocab, what="coverage")
    warn_of_misread(tokens, args.vocab)
    files = find_corpus_files(args.inputs)
    meter = CoverageMeter(WordPiece(tokens, max_bytes_per_word=limit), max_length=args.max_length)
    with Progress("coverage", unit="text") as progress:
        for language, text in progress.each(read_texts(files)):
            meter.add(language, text)
    if not meter.languages:
        raise InputError("no line of the input has a word", remedy="name files with text")
    return meter.languages
