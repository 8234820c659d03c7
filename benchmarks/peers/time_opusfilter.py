"""Times OpusFilter's filters; `benchmarks.corpora.filters` runs this with OpusFilter's Python.

    python -m benchmarks.peers.time_opusfilter PAIRS.tsv LID_MODEL

PAIRS.tsv has the columns language, script, English and foreign text. Prints a JSON object: the
number of pairs read, and by filter the seconds and the number of pairs accepted.
"""

import collections
import json
import sys
import time

from opusfilter import filters

from benchmarks.peers import opusfilter_settings


def main():
    pairs = collections.defaultdict(list)
    with open(sys.argv[1], encoding="utf-8", newline="\n") as file:
        for line in file:
            language, script, *texts = line.rstrip("\n").split("\t")
            pairs[language, script].append(texts)
    found = collections.defaultdict(lambda: [0.0, 0])
    for (language, script), texts in pairs.items():
        for name, kind, options in opusfilter_settings.settings(language, script, sys.argv[2]):
            filter_ = getattr(filters, kind)(**options)
            start = time.process_time()
            accepted = sum(map(filter_.accept, filter_.score(texts)))
            found[name][0] += time.process_time() - start
            found[name][1] += accepted
    read = sum(map(len, pairs.values()))
    json.dump({"pairs": read, "filters": found}, sys.stdout)


if __name__ == "__main__":
    main()
