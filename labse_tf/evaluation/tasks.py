"""The tasks by name, for `labse eval TASK`.

To add one: write a module beside this one with `evaluate(systems, data, ...)` that returns a dict
for JSON, and `PRIMARY_METRIC`, the key in it that sums the result up; name the module here.
"""

from __future__ import annotations

from labse_tf.evaluation import retrieval

TASKS = {"retrieval": retrieval}
