"""The tasks by name, for `labse eval TASK`.

To add one: write a module beside this one with

  evaluate(encoder, data, *, ...) -> dict    scores any encoder (see encoder.py); what
                                             it returns is made by `record.make_record`
  OPTIONS                                    the keyword arguments of `evaluate`, which have
                                             defaults; new ones go into labse_tf/cli/eval.py
  PRIMARY_METRIC                             the key of the result that sums it up
  format_table(result) -> str                what is printed
  draw(result, figure)                       draws on a matplotlib Figure, for --plot; a
                                             task without it has no plot

and name it here. The command line, the record's file, and the tests of every task follow.
"""

from __future__ import annotations

from labse_tf.evaluation import bucc, language_bias, retrieval, sts, tatoeba, un

TASKS = {
    "retrieval": retrieval,
    "tatoeba": tatoeba,
    "un": un,
    "bucc": bucc,
    "sts": sts,
    "language-bias": language_bias,
}
