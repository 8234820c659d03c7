"""The report of a filter job as a plain-text table."""

from __future__ import annotations

from beam_pipelines.reporting.report import KEPT, READ
from labse_tf.languages import is_code, language_of

# As many as fit on a line; `report.json` has all.
_REASONS_SHOWN = 3


def format_report(report: dict) -> str:
    """Returns one line per language with its most frequent reasons, and one for the total."""
    header = f"{'code':9}{'language':18}{'read':>14}{'kept':>14}{'kept %':>8}  dropped, mostly as"
    rule = "-" * len(header)
    rows = [
        _format_row(code, language_of(code).name if is_code(code) else "", row)
        for code, row in report["languages"].items()
    ]
    total = _format_row("", f"all {len(rows)}", report["total"])
    return "\n".join([header, rule, *rows, rule, total, *_unchecked(report)])


def _unchecked(report: dict) -> list[str]:
    return [
        f"{code}: not checked, for want of knowledge of the language: {', '.join(names)}"
        for code, names in report.get("unchecked", {}).items()
    ]


def _format_row(code: str, name: str, row: dict) -> str:
    share = f"{100 * row[KEPT] / row[READ]:.1f}" if row[READ] else "-"
    found = sorted((-number, reason) for reason, number in row["dropped"].items() if number)
    reasons = ", ".join(f"{reason} {-number:,}" for number, reason in found[:_REASONS_SHOWN])
    line = f"{code:9}{name:18.18}{row[READ]:>14,}{row[KEPT]:>14,}{share:>8}  {reasons}"
    return line.rstrip()
