"""The data of the multilingual experiments: documents, pairs, and three tests of retrieval.

    python -m benchmarks.cmlm.data RACE_DATA TATOEBA NEIGHBOURS LIBREOFFICE --out DIR

RACE_DATA is from `benchmarks.race.data`, TATOEBA the files of LASER's test. NEIGHBOURS has files
<lang>.txt[.xz] and <lang>.test.txt[.xz] of sentences in the order of documents; LIBREOFFICE has
<split>/<lang>.tsv[.xz] of English and foreign text. Writes, of the languages in LANGUAGES,

    DIR/train, DIR/held_out    links to the documents, English too
    DIR/bitext                 RACE_DATA's pairs
    DIR/few                    the same, but FEW_PAIRS of each language in FEW
    DIR/tatoeba, DIR/news      links to the tests, as files of the task `tatoeba`
    DIR/manual                 such a test of LibreOffice's pairs: held-out sentences of more than
                               30 characters that are not in DIR/train on either side
"""

from __future__ import annotations

import argparse
import random
from itertools import chain
from pathlib import Path

from labse_tf.files.textio import read_lines, read_pairs

# In the names of documents -> in those of the tests.
LANGUAGES = {
    **{"de": "deu", "fr": "fra", "es": "spa", "it": "ita", "ru": "rus", "tr": "tur"},
    **{"ja": "jpn", "hu": "hun", "nl": "nld", "pl": "pol", "fi": "fin", "zh": "cmn"},
}
FEW, FEW_PAIRS = ("fr", "it", "tr", "hu", "pl", "ja"), 1000
# NTREX's names of the same languages, where they differ.
_NEWS = {"cmn": "zho-CN"}
_MANUAL_PAIRS, _MANUAL_CHARACTERS = 500, 30


def link_documents(neighbours: Path, out: Path) -> None:
    for language in ("en", *LANGUAGES):
        for part, name in (("train", language), ("held_out", f"{language}.test")):
            [path] = neighbours.glob(f"{name}.txt*")
            _link(path, out / part / path.name.replace(name, language, 1))


def write_pairs(train: Path, out: Path) -> None:
    for language, code in LANGUAGES.items():
        [path] = (train / code).iterdir()
        lines = [line for _, line in read_lines(path)]
        few = random.Random(0).sample(lines, FEW_PAIRS) if language in FEW else lines
        for folder, some in (("bitext", lines), ("few", few)):
            _write(out / folder / f"{language}.tsv", some)


def link_tests(tatoeba: Path, news: Path, out: Path) -> None:
    for code in LANGUAGES.values():
        for path in tatoeba.glob(f"tatoeba.{code}-eng.*"):
            _link(path, out / "tatoeba" / path.name)
        theirs = _NEWS.get(code, code)
        for path in news.glob(f"ntrex.{theirs}-eng.*"):
            _link(path, out / "news" / f"tatoeba.{code}-eng{path.suffix.replace(theirs, code)}")


def write_manual(libreoffice: Path, out: Path) -> None:
    english_known = _sentences(out / "train", "en")
    for language, code in LANGUAGES.items():
        held_out = _sentences(out / "held_out", language) - _sentences(out / "train", language)
        rows: dict[str, str] = {}
        for path in sorted(libreoffice.glob(f"*/{language}.tsv*")):
            for _, english, foreign in read_pairs(path):
                if english not in english_known and foreign in held_out:
                    rows.setdefault(english, foreign)
        long = [row for row in rows.items() if min(map(len, row)) > _MANUAL_CHARACTERS]
        long = long[:_MANUAL_PAIRS]
        for suffix, side in zip(("eng", code), zip(*long, strict=True), strict=True):
            _write(out / "manual" / f"tatoeba.{code}-eng.{suffix}", side)
        print(f"{language}: {len(long)} pairs of the manual")


def _sentences(folder: Path, language: str) -> set[str]:
    paths = folder.glob(f"{language}.txt*")
    return {line for _, line in chain.from_iterable(map(read_lines, paths)) if line}


def _link(path: Path, link: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(path.resolve())


def _write(path: Path, lines) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("race_data", "tatoeba", "neighbours", "libreoffice"):
        parser.add_argument(name, type=Path, metavar=name.upper())
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    link_documents(args.neighbours, args.out)
    write_pairs(args.race_data / "train", args.out)
    link_tests(args.tatoeba, args.race_data / "news", args.out)
    write_manual(args.libreoffice, args.out)


if __name__ == "__main__":
    main()
