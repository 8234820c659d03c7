"""Times OpusFilter's filters; `benchmarks.corpora` runs this with the Python that has OpusFilter.

    python time_opusfilter.py PAIRS.tsv LID_MODEL

PAIRS.tsv has language, script, English and foreign text in its columns. Prints a JSON object:
filter -> [seconds, pairs accepted].
"""

import collections
import json
import sys
import time

from opusfilter import filters


def build_filters(language, script, lid_model):
    return {
        "length": filters.LengthFilter(min_length=2, max_length=5000, unit="char"),
        "length ratio": filters.LengthRatioFilter(threshold=9, unit="char"),
        "script": filters.CharacterScoreFilter(scripts=["Latin", script], thresholds=[0.3, 0.3]),
        "mark-up": filters.HtmlTagFilter(),
        "numbers": filters.NonZeroNumeralsFilter(threshold=0.3),
        "similar sides": filters.SimilarityFilter(threshold=0.6, lowercase=True),
        "language": filters.FastTextFilter(
            languages=["en", language], thresholds=[0.3, 0.3], model_path=lid_model
        ),
    }


def main():
    pairs = collections.defaultdict(list)
    with open(sys.argv[1], encoding="utf-8", newline="\n") as file:
        for line in file:
            language, script, *texts = line.rstrip("\n").split("\t")
            pairs[language, script].append(texts)
    found = collections.defaultdict(lambda: [0.0, 0])
    for (language, script), texts in pairs.items():
        for name, filter_ in build_filters(language, script, sys.argv[2]).items():
            start = time.perf_counter()
            accepted = sum(map(filter_.accept, filter_.score(texts)))
            found[name][0] += time.perf_counter() - start
            found[name][1] += accepted
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
