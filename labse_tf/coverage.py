"""The coverage of a vocabulary as a plain-text table and as TSV."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping

from labse_tf.languages import language_of
from vocab.coverage import Coverage, add_up

# Column header -> attribute of `Coverage`, and the factor it is multiplied by.
_COLUMNS = {
    "lost %": ("lost_rate", 100),
    "[UNK] %": ("unknown_rate", 100),
    "chars/token": ("characters_per_token", 1),
    "tokens/sentence": ("tokens_per_sentence", 1),
    "cut %": ("truncated_rate", 100),
    "too long %": ("too_long_rate", 100),
}
_COUNTS = tuple(field.name for field in dataclasses.fields(Coverage))
_RATES = tuple(rate for rate, _ in _COLUMNS.values())


def worst_first(coverage: Mapping[str, Coverage]) -> list[tuple[str, Coverage]]:
    """Returns the languages that lose most text to `[UNK]` first, then those truncated most."""
    return sorted(
        coverage.items(), key=lambda item: (-item[1].lost_rate, -item[1].truncated_rate, item[0])
    )


def format_table(coverage: Mapping[str, Coverage]) -> str:
    """Returns the rates as plain text within 100 columns, the worst language first.

    The last two lines are the rates over all text and the mean over languages.
    """
    header = f"{'code':5}{'language':18}{'sentences':>10}"
    header += "".join(f"{name:>{_width(name)}}" for name in _COLUMNS)
    rule = "-" * len(header)
    lines = [
        _format_row(code, language_of(code).name, counts.sentences, _rates(counts))
        for code, counts in worst_first(coverage)
    ]
    total, means = add_up(coverage.values()), []
    for rates in zip(*map(_rates, coverage.values()), strict=True):
        known = [rate for rate in rates if math.isfinite(rate)]
        means.append(sum(known) / len(known) if known else math.nan)
    last = [
        _format_row("", "all text", total.sentences, _rates(total)),
        _format_row("", f"mean of {len(coverage)}", "", means),
    ]
    return "\n".join([header, rule, *lines, rule, *last])


def _format_row(code: str, name: str, sentences: int | str, rates: Iterable[float]) -> str:
    line = f"{code:5}{name:18}{sentences:>10}"
    for (column, (_, factor)), rate in zip(_COLUMNS.items(), rates, strict=True):
        cell = f"{factor * rate:.2f}" if math.isfinite(rate) else "-"
        line += f"{cell:>{_width(column)}}"
    return line


def _width(column: str) -> int:
    return max(len(column), 6) + 2


def _rates(counts: Coverage) -> list[float]:
    return [getattr(counts, rate) for rate in _RATES]


def format_tsv(coverage: Mapping[str, Coverage]) -> str:
    """Returns a header and one line per language, the worst first: all counts, then all rates.

    The columns are `Coverage`'s attributes; an undefined rate is empty.
    """
    lines = [("language", "name", "script", *_COUNTS, *_RATES)]
    for code, counts in worst_first(coverage):
        language = language_of(code)
        rates = (f"{rate:.6g}" if math.isfinite(rate) else "" for rate in _rates(counts))
        numbers = (str(getattr(counts, name)) for name in _COUNTS)
        lines.append((code, language.name, language.script, *numbers, *rates))
    return "".join("\t".join(line) + "\n" for line in lines)
