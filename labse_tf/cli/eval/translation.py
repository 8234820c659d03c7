"""`labse eval translation`: BLEU and chrF by sacreBLEU (Post 2018, arXiv 1804.08771)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from labse_tf.cli.arguments import add_overwrite

# sacreBLEU splits English-like text and Chinese without further packages. In other languages that
# put no spaces between words it would count sentences as words, and in Korean words with particles.
_CHARACTERS = ("ja", "ko", "th", "lo", "km", "my", "bo")
_TOKENIZERS = {"zh": "zh", **dict.fromkeys(_CHARACTERS, "char")}

EXAMPLES = """examples:
  labse eval translation english.txt reference.txt --language en
  labse eval translation japanese.txt reference.txt.xz --language ja --out bleu.json

Line i of both files is the same sentence. BLEU and chrF are sacreBLEU's, printed with its
signatures; BLEU counts characters in Korean and in languages without spaces between words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("translations", metavar="TRANSLATIONS", help="one per line")
    parser.add_argument("references", metavar="REFERENCES", help="one per line")
    parser.add_argument("--language", required=True, metavar="CODE", help="of both files")
    parser.add_argument("--out", metavar="FILE.json", help="write the scores")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> None:
    from labse_tf.errors import InputError
    from labse_tf.files.outputs import check_free_file, write_json
    from labse_tf.files.textio import read_lines
    from labse_tf.languages import require_code

    language = require_code(args.language)
    if args.out:
        check_free_file(args.out, overwrite=args.overwrite)
    texts, references = (
        [line for _, line in read_lines(path)] for path in (args.translations, args.references)
    )
    if len(texts) != len(references):
        raise InputError(
            f"has {len(texts)} lines, {args.references} has {len(references)}",
            path=args.translations,
            remedy="line i of both must be the same sentence",
        )
    scores = score_translations(texts, references, language)
    print(f"{len(texts)} sentences")
    for name, found in scores.items():
        print(f"{name:5} {found['score']:6.2f}   {found['signature']}")
    if args.out:
        write_json(args.out, {"sentences": len(texts), **scores}, overwrite=args.overwrite)


def score_translations(
    translations: Sequence[str], references: Sequence[str], language: str
) -> dict[str, dict[str, Any]]:
    """Returns for `BLEU` and `chrF` the `score`, from 0 to 100, and sacreBLEU's `signature`.

    The code of the language chooses the words that BLEU counts.
    """
    from sacrebleu.metrics import BLEU, CHRF

    found = {}
    for metric in (BLEU(tokenize=_TOKENIZERS.get(language, "13a")), CHRF()):
        score = metric.corpus_score(list(translations), [list(references)])
        signature = str(metric.get_signature())
        found[score.name.removesuffix("2")] = {"score": score.score, "signature": signature}
    return found
