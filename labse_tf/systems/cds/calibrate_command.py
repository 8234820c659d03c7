"""`labse corpus calibrate`: chooses a score threshold from pairs labelled by people."""

from __future__ import annotations

import argparse

EXAMPLES = """examples:
  labse corpus score-cds runs/cds clean --sample 500 --out scored.tsv
  (write GOOD or BAD into the column `label` of scored.tsv, in as many lines as you can)
  labse corpus calibrate scored.tsv --target-precision 0.8
  labse corpus filter-bitext web --out clean --cds runs/cds --min-cds-score THRESHOLD

SCORED.tsv has a header with the columns `score` and `label`, in any order, and may have others.
Lines without a label are ignored. The command chooses the lowest threshold at which the share of
GOOD pairs among those kept meets the target; the LaBSE paper uses 80 %."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scored", metavar="SCORED.tsv")
    parser.add_argument(
        "--target-precision",
        type=float,
        default=0.8,
        metavar="P",
        help="required share of GOOD pairs among those kept, 0 to 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--by-lower-bound",
        action="store_true",
        help="require that the lower end of the precision's 95 %% interval meets the target",
    )


def run(args: argparse.Namespace) -> None:
    from labse_tf.errors import InputError
    from labse_tf.systems.cds import calibration

    if not 0 < args.target_precision <= 1:
        raise InputError(
            f"--target-precision is {args.target_precision}", remedy="give a share from 0 to 1"
        )
    scores, is_good, unmarked = calibration.read_marked(args.scored)
    found = calibration.choose_threshold(
        scores,
        is_good,
        target_precision=args.target_precision,
        by_lower_bound=args.by_lower_bound,
    )
    print(f"threshold  {found.threshold!r}")
    print(f"marked     {found.pairs} pairs, {found.good} of them GOOD; {unmarked} without a label")
    print(f"kept       {found.kept}, {found.kept_good} of them GOOD")
    for name, trials in (("precision", found.kept), ("recall", found.good)):
        low, high = calibration.wilson_interval(found.kept_good, trials)
        value = getattr(found, name)
        print(f"{name:9}  {value:.3f} (95 % interval {low:.3f} to {high:.3f})")
