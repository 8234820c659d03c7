"""What the Hugging Face Hub reads at the top of a model card: languages, licence, results."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import yaml

from labse_tf.evaluation.task import find_task, primary_figure

# Licences by the Hub's names; any other is "other", with its own name.
_LICENCES = frozenset(
    ("apache-2.0", "mit", "bsd-3-clause", "gpl-3.0", "mpl-2.0", "cc0-1.0")
    + ("cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "openrail")
)
_TAGS = ("feature-extraction", "sentence-similarity", "bitext-mining", "LaBSE")
# Of our tasks, the types that the Hub and MTEB have.
_TYPES = {
    **dict.fromkeys(("tatoeba", "bucc", "un", "retrieval", "xsim"), "BitextMining"),
    **dict.fromkeys(("sts",), "STS"),
    **dict.fromkeys(("classify", "xnli", "senteval"), "Classification"),
    "paraphrase": "PairClassification",
}


def front_matter(facts: dict[str, Any], results: Iterable[dict[str, Any]] = ()) -> str:
    """Returns YAML between two lines of `---`.

    Args:
      facts: the contents of model.json.
      results: records of `labse eval`.
    """
    library = "sentence-transformers" if "hf" in facts["formats"] else "labse_tf"
    found: dict[str, Any] = {}
    if facts["languages"]:
        found["language"] = sorted(facts["languages"])
    found |= _licence(facts["licence"])
    found |= {"library_name": library, "pipeline_tag": "sentence-similarity"}
    found["tags"] = [library, *_TAGS]
    if entries := [_result(record) for record in results]:
        found["model-index"] = [{"name": "labse_tf", "results": entries}]
    text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n\n"


def _licence(licence: str | None) -> dict[str, str]:
    if not licence:
        return {}
    name = licence.strip().lower()
    if name in _LICENCES:
        return {"license": name}
    return {"license": "other", "license_name": licence}


def _result(record: dict[str, Any]) -> dict[str, Any]:
    task = record["task"]
    value = 100 * primary_figure(find_task(task), record)
    data = os.path.basename(os.path.normpath(record["data"]["path"]))
    return {
        "task": {"type": _TYPES.get(task, "sentence-similarity"), "name": task},
        "dataset": {"type": data, "name": data},
        "metrics": [{"type": record["primary_metric"], "value": round(value, 2)}],
    }
