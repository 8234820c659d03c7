"""`labse vocab extend`: adds the pieces that a language needs to a model's vocabulary."""

from __future__ import annotations

import argparse

from labse_tf.cli.arguments import OVERWRITE, WORD_LIMIT, add_options, parse_languages, word_limit

EXAMPLES = """examples:
  labse vocab extend LaBSE --text my/text/mfe.txt my/pairs/mfe.tsv --add 5000 --out vocab.txt
  labse vocab extend model --text my/pairs --languages mfe,ba --add 8000 --out vocab.txt

MODEL is a model dir, a run, a Hugging Face BERT, or a vocabulary file. Text is monolingual text,
bitext or clean shards, in any format of docs/files.md. The old tokens keep their ids; the new ones
come after them. Train with both, and each new row begins as the mean of the old rows that spell it:

  labse train configs/finetune.yaml --run-dir runs/mfe --init LaBSE \\
      --set tokenizer.vocab_file=vocab.txt --set train.bitext=[my/pairs]

The table says what is gained. Thousands of pieces suffice for most languages: each more is used
less often than the one before."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        model MODEL: a model, or a vocabulary file
        --text INPUT...!: text of the languages
        --add N!: how many tokens to add, at most
        --out VOCAB!: the vocabulary to write
        --languages CODES: of the text, use these alone, such as mfe,ba (default: all; of pairs, not
          English)
        """,
        WORD_LIMIT,
        OVERWRITE,
    )


def run(args: argparse.Namespace) -> None:
    import logging

    from labse_tf.errors import InputError
    from labse_tf.files.outputs import check_free, whole_file
    from labse_tf.tokenization.vocabulary_readers import require_wordpieces
    from vocab import wordpiece_file
    from vocab.extension import find_pieces

    check_free(args.out, overwrite=args.overwrite)
    limit = word_limit(args)
    if args.add < 1:
        raise InputError(f"--add is {args.add}", remedy="give 1 or more")
    path = _vocab_file(args.model)
    tokens = wordpiece_file.read(path)
    require_wordpieces(tokens, path, what="an extension")
    words = _count_words(args, tokens, limit)
    show = logging.getLogger("labse").info
    new = find_pieces(tokens, words, args.add, max_bytes_per_word=limit, progress=show)
    if not new:
        raise InputError(
            "the vocabulary lacks no piece that this text has twice",
            path=path,
            remedy="use it as it is, or name more text",
        )
    with whole_file(args.out, overwrite=args.overwrite) as partial:
        wordpiece_file.write(partial, [*tokens, *new])
    print(_table(tokens, new, words, limit))


def _vocab_file(model: str) -> str:
    import os

    from labse_tf.files.staging import input_path

    if os.path.isfile(input_path(model)):
        return str(input_path(model))
    from labse_tf.training.runs.initial_weights import open_origin

    return str(open_origin(model).vocab_file)


def _count_words(args: argparse.Namespace, tokens: list[str], limit: int) -> dict:
    """Returns language -> word -> number of occurrences."""
    from collections import Counter, defaultdict

    from beam_pipelines.reading.readers import read_texts
    from labse_tf.errors import InputError
    from labse_tf.files.corpus_files import find_corpus_files
    from labse_tf.files.record_kinds import BITEXT, ENGLISH
    from labse_tf.progress import Progress
    from vocab.wordpiece import WordPiece

    wanted = parse_languages(args.languages)
    files = find_corpus_files(args.text)
    skipped = {ENGLISH} if not wanted and any(file.kind == BITEXT for file in files) else set()
    splitter = WordPiece(tokens, max_bytes_per_word=limit)
    words: dict[str, Counter[str]] = defaultdict(Counter)
    with Progress("count words", unit="text") as progress:
        for language, text in progress.each(read_texts(files)):
            if language in wanted or not wanted and language not in skipped:
                words[language].update(splitter.words(text))
    words = {language: counter for language, counter in sorted(words.items()) if counter}
    missing = [language for language in wanted if language not in words]
    if missing or not words:
        raise InputError(
            f"there is no text in {', '.join(missing) or 'the input'}",
            path=args.text[0],
            remedy="name files with text of the languages",
        )
    return words


def _table(tokens: list[str], new: list[str], words: dict, limit: int) -> str:
    from labse_tf.languages import language_of
    from vocab.extension import measure
    from vocab.wordpiece import WordPiece

    before = WordPiece(tokens, max_bytes_per_word=limit)
    after = WordPiece([*tokens, *new], max_bytes_per_word=limit)
    header = f"{'code':9}{'language':22}{'words':>12}{'tokens a word':>20}{'[UNK] % of words':>20}"
    lines = [header, "-" * len(header)]
    for code, counts in words.items():
        one, other = measure(before, counts), measure(after, counts)
        rates = [f"{each.tokens / each.words:.2f}" for each in (one, other)]
        lost = [f"{100 * each.unknown / each.words:.2f}" for each in (one, other)]
        name = language_of(code).name
        lines.append(
            f"{code:9}{name:22.22}{one.words:>12,}{' -> '.join(rates):>20}{' -> '.join(lost):>20}"
        )
    total = len(tokens) + len(new)
    return "\n".join([*lines, "-" * len(header), f"{len(new):,} new tokens, {total:,} in all"])
