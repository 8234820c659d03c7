"""The corpora of the ablations: everyday sentences and software messages in 16 languages.

    python -m benchmarks.training.ablations_data TATOEBA_TRAIN TATOEBA_TEST LIBREOFFICE --out DIR

TATOEBA_TRAIN holds `<iso 639-3>.tsv[.xz]`, English first, TATOEBA_TEST the files of LASER's test,
LIBREOFFICE the folders train and test of `<code>.tsv[.xz]`, English first. Writes bitext to
DIR/bitext, both its sides to DIR/text, the tests to DIR/test. Pairs that share a sentence with a
test are left out of the bitext.
"""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks import make_parser, write_lines
from labse_tf.files.textio import read_lines, read_pairs

# Several scripts and families, and all sizes from 300 everyday pairs (th) to 20,000.
LANGUAGES = {
    "ar": "ara", "de": "deu", "el": "ell", "fi": "fin", "fr": "fra", "he": "heb", "hi": "hin",
    "ja": "jpn", "ko": "kor", "nl": "nld", "pl": "pol", "ru": "rus", "th": "tha", "tr": "tur",
    "uk": "ukr", "zh": "cmn",
}  # fmt: skip
_MOST = {"tatoeba": 20_000, "libreoffice": 3_000}
_TEST_PAIRS = 1000

_Pair = tuple[str, str]


def main() -> None:
    parser = make_parser(__doc__, "tatoeba_train", "tatoeba_test", "libreoffice")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    found = {
        language: {
            "tatoeba": (
                _pairs(args.tatoeba_train, code),
                _aligned(args.tatoeba_test / f"tatoeba.{code}-eng.{code}"),
            ),
            "libreoffice": (
                _pairs(args.libreoffice / "train", language),
                _pairs(args.libreoffice / "test", language),
            ),
        }
        for language, code in LANGUAGES.items()
    }
    tests = {
        (corpus, language): _sample(both[corpus][1], _TEST_PAIRS)
        for language, both in found.items()
        for corpus in _MOST
    }
    tested = {text for pairs in tests.values() for pair in pairs for text in pair}
    for (corpus, language), test in tests.items():
        pairs = [pair for pair in found[language][corpus][0] if not tested & set(pair)]
        _write_pairs(args.out, corpus, language, _sample(pairs, _MOST[corpus]), test)
    print(f"{len(LANGUAGES)} languages in {args.out}")


def _pairs(folder: Path, name: str) -> list[_Pair]:
    [path] = folder.glob(f"{name}.tsv*")
    return [(english, foreign) for _, english, foreign in read_pairs(path)]


def _aligned(foreign: Path) -> list[_Pair]:
    sides = (foreign.with_suffix(".eng"), foreign)
    return list(zip(*([text for _, text in read_lines(side)] for side in sides), strict=True))


def _sample(pairs: list[_Pair], most: int) -> list[_Pair]:
    different = sorted(set(pairs))
    return random.Random(0).sample(different, min(most, len(different)))


def _write_pairs(
    out: Path, corpus: str, language: str, pairs: list[_Pair], test: list[_Pair]
) -> None:
    write_lines(out / "bitext" / corpus / f"{language}.tsv", ("\t".join(pair) for pair in pairs))
    write_lines(out / "test" / corpus / f"{language}.tsv", ("\t".join(pair) for pair in test))
    for code, side in (("en", 0), (language, 1)):
        folder = out / "text" / corpus / language
        write_lines(folder / f"{code}.txt", dict.fromkeys(pair[side] for pair in pairs))


if __name__ == "__main__":
    main()
