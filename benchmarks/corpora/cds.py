"""How well contrastive data selection separates good pairs from bad ones.

    python -m benchmarks.corpora.mix de PAIRS.tsv... --other fr FR.tsv... --out DATA
    labse corpus train-cds --config configs/cds_tiny.yaml --noisy DATA/noisy \\
        --trusted DATA/trusted --run-dir RUN
    python -m benchmarks.corpora.cds RUN de --good DATA/good.tsv --bad DATA/bad.tsv

Prints the area under the ROC curve (1: every good pair scores above every bad one; 0.5: chance) of
the score, of either translator's likelihood alone, and of the length ratio.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.metrics import roc_auc_score

from beam_pipelines.filters.lengths import LengthRatio
from beam_pipelines.records import Pair
from benchmarks import make_parser
from labse_tf.errors import InputError
from labse_tf.files.textio import read_pairs
from labse_tf.systems.cds.calibration import choose_threshold
from labse_tf.systems.cds.scorer import TranslatorScorer, cds_scores


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("run_dir")
    parser.add_argument("language")
    parser.add_argument("--good", nargs="+", required=True, metavar="TSV")
    parser.add_argument("--bad", nargs="+", required=True, metavar="TSV")
    args = parser.parse_args()
    good, bad = (
        [Pair(*sides, args.language) for path in paths for _, *sides in read_pairs(path)]
        for paths in (args.good, args.bad)
    )
    pairs = good + bad
    is_good = np.arange(len(pairs)) < len(good)
    scorer = TranslatorScorer(args.run_dir)
    start = time.perf_counter()
    noisy, trusted = scorer.log_likelihoods(pairs).T
    seconds = time.perf_counter() - start
    scores = cds_scores(noisy, trusted)
    print(f"{len(good)} good and {len(bad)} bad pairs, {len(pairs) / seconds:.0f} pairs/s")
    for name, values in (
        ("contrastive score", scores),
        ("trusted translator alone", trusted),
        ("noisy translator alone", noisy),
        ("length ratio", -np.array(LengthRatio().score(pairs))),
    ):
        print(f"AUC {roc_auc_score(is_good, values):.4f}  {name}")
    for target in (0.8, 0.9, 0.95):
        _print_threshold(scores, is_good, target)


def _print_threshold(scores: np.ndarray, is_good: np.ndarray, target: float) -> None:
    try:
        found = choose_threshold(scores, is_good, target_precision=target)
    except InputError as error:
        print(f"precision {target}: {error.problem}")
        return
    print(
        f"precision {found.kept_good / found.kept:.3f}, "
        f"recall {found.kept_good / found.good:.3f} at a threshold of "
        f"{found.threshold:.4f}"
    )


if __name__ == "__main__":
    main()
