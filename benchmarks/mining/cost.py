"""The cost of embedding two corpora and finding each sentence's neighbours in the other.

    python -m benchmarks.mining.cost [--sources 7.7e9] [--targets 6e8] [--tokens 30] ...

A calculation, not a measurement: prints the tables of docs/measurements/mining_the_web.md, in
Markdown. The page names the measured rates of a core, when it embeds and in matrix products; an
accelerator is a TPU v3 core at 40 % of its peak. A sentence of so many tokens, [CLS] and [SEP]
included, is compared with the lists of so many probes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks import make_parser

_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
# k-means as in `labse_tf.retrieval.approximate`: passes, and training vectors per list.
_PASSES, _TRAINING_VECTORS = 8, 64
# A neighbour is a float32 and an int64; a list number is an int32, kept by source and by list.
_NEIGHBOUR_BYTES, _LIST_BYTES = 12, 8


class Encoder(NamedTuple):
    """The sizes of a BERT."""

    layers: int
    width: int
    intermediate: int


def sentence_flop(encoder: Encoder, tokens: int) -> int:
    """Returns FLOPs to embed a sentence: 2 per weight and token, plus attention and pooler."""
    layers, width, intermediate = encoder
    weights = 4 * width**2 + 2 * width * intermediate
    attention = 4 * width * tokens**2
    return layers * (2 * weights * tokens + attention) + 2 * width**2


def product_flop(sources: float, targets: float, dim: int) -> float:
    """Returns the FLOPs of all inner products; each serves both directions."""
    return 2 * dim * sources * targets


class JointSearch(NamedTuple):
    """What `labse mine` does above a size: lists of both sides, compared list by list.

    Attributes:
      lists: as `labse_tf.retrieval.approximate.default_lists`.
      train_flop: k-means.
      assign_flop: finding the lists of all vectors.
      compare_flop: products inside the lists, each once for both directions.
    """

    lists: int
    train_flop: float
    assign_flop: float
    compare_flop: float

    @property
    def flop(self) -> float:
        return self.train_flop + self.assign_flop + self.compare_flop


def plan_joint_search(sources: float, targets: float, *, dim: int, probes: int) -> JointSearch:
    """Returns the cost of comparing each source with the targets of `probes` lists."""
    lists = 2 ** round(math.log2(4 * math.sqrt(min(sources, targets))))
    return JointSearch(
        lists,
        _PASSES * product_flop(_TRAINING_VECTORS * lists, lists, dim),
        product_flop(sources + targets, lists, dim),
        product_flop(sources, targets, dim) * probes / lists,
    )


def print_tables(args: argparse.Namespace) -> None:
    encoder = Encoder(args.layers, args.width, args.intermediate)
    sentences = args.sources + args.targets
    one = sentence_flop(encoder, args.tokens)
    exact = product_flop(args.sources, args.targets, args.dim)
    search = plan_joint_search(args.sources, args.targets, dim=args.dim, probes=args.probes)
    core, products = (3.6e12 * rate for rate in (args.core_gflops, args.core_product_gflops))
    accelerator = 3.6e15 * args.accelerator_tflops
    hours = {
        "embedding": (_si(one * sentences / core), _si(one * sentences / accelerator)),
        "exact search": (_si(exact / products), _si(exact / accelerator)),
        "`labse mine`, approximate": (_si(search.flop / products), "-"),
    }

    def of_hours(name: str) -> list[tuple[str, str]]:
        return list(zip(("core-hours", "accelerator-hours"), hours[name], strict=True))

    kept = _NEIGHBOUR_BYTES * args.neighbours * sentences
    _print_table(
        ("embedding", ""),
        (f"a sentence of {args.tokens} tokens", _si(one, "FLOP")),
        ("both sides", _si(one * sentences, "FLOP")),
        ("sentences/s of a core", f"{args.core_gflops * 1e9 / one:,.1f}"),
        ("sentences/s of an accelerator", f"{args.accelerator_tflops * 1e12 / one:,.0f}"),
        *of_hours("embedding"),
    )
    _print_table(
        ("vectors", "bytes", "sources", "targets"),
        *(
            (name, f"{size * args.dim:,}", *(_si(size * args.dim * n, "B") for n in sides))
            for sides in [(args.sources, args.targets)]
            for name, size in (("float32", 4), ("float16", 2), ("int8", 1))
        ),
    )
    _print_table(
        ("exact search", ""),
        ("products, once for both directions", _si(exact, "FLOP")),
        *of_hours("exact search"),
    )
    _print_table(
        (f"`labse mine`, approximate, {args.probes} lists per source", ""),
        ("lists", f"{search.lists:,}"),
        ("k-means", _si(search.train_flop, "FLOP")),
        ("putting vectors into lists", _si(search.assign_flop, "FLOP")),
        ("products, once for both directions", _si(search.compare_flop, "FLOP")),
        (f"{args.neighbours} neighbours per sentence, in memory", _si(kept, "B")),
        (
            "the lists of each source, in memory, by source and by list",
            _si(_LIST_BYTES * args.probes * args.sources, "B"),
        ),
        ("a byte a number, on disk", _si(args.dim * sentences, "B")),
        of_hours("`labse mine`, approximate")[0],
    )
    rows = [(name, *pair) for name, pair in hours.items()]
    _print_table(("all in hours", "of a core", "of an accelerator"), *rows)


def _si(number: float, unit: str = "") -> str:
    """Three digits and a prefix: 7_096_000 -> `7.10 M`."""
    power = 0
    while float(f"{number:.3g}") >= 1000 and power < len(_PREFIXES) - 1:
        number /= 1000
        power += 1
    digits = max(0, 2 - math.floor(math.log10(float(f"{number:.3g}")))) if number else 0
    return f"{number:.{min(digits, 2)}f} {_PREFIXES[power]}{unit}".rstrip()


def _print_table(head: Sequence[str], *rows: Sequence[str]) -> None:
    lines = ["|".join(f" {cell} " if cell else " " for cell in row) for row in (head, *rows)]
    print(f"\n|{lines[0]}|\n|{'---|' * len(head)}")
    for line in lines[1:]:
        print(f"|{line}|")


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    rates = {"core_gflops": 68.0, "core_product_gflops": 90.0, "accelerator_tflops": 24.6}
    sizes = {"tokens": 30, "dim": 768, "layers": 12, "width": 768, "intermediate": 3072}
    kept = {"probes": 32, "neighbours": 4}
    parser = make_parser(__doc__, sources=7.7e9, targets=6e8, **rates, **sizes, **kept)
    return parser.parse_args(argv)


if __name__ == "__main__":
    print_tables(parse_arguments())
