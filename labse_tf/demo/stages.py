"""The stages of the demo: the commands that a user would type, in order."""

from __future__ import annotations

import json
import logging
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from labse_tf.errors import InputError
from labse_tf.files.outputs import locked, write_json

_log = logging.getLogger("labse")

# For Beam. More than two processes would save little, and each takes 300 MB.
_TWO_PROCESSES = " -- --direct_running_mode=multi_processing --direct_num_workers=2"
_ON_BITEXT = " --set train.bitext=[{out}/clean_bitext]"
_COMMANDS = {
    "the corpus": "corpus demo {out}/corpus",
    "filter the monolingual text": "corpus filter-monolingual {out}/corpus/monolingual"
    " --out {out}/clean_monolingual",
    # These are human translations, and many are single terms, for which language identification is
    # unreliable: 0.3, the default, would lose 8 % of them.
    "filter the translation pairs": "corpus filter-bitext {out}/corpus/bitext"
    " --out {out}/clean_bitext --max-language-doubt 0.5" + _TWO_PROCESSES,
    "learn the vocabulary": "vocab build {out}/clean_monolingual {out}/clean_bitext"
    " --out {out}/vocab.txt --vocab-size 60000" + _TWO_PROCESSES,
    "train a dual encoder without layers: a sentence is the average of its token vectors": "train"
    " {table_config} --run-dir {out}/table"
    + _ON_BITEXT
    + " --set tokenizer.vocab_file={out}/vocab.txt",
    "export it": "export {out}/table --out {out}/table_model --format hub --no-verify",
    "put layers on top, and train on": "train {config} --run-dir {out}/dual --init {out}/table"
    + _ON_BITEXT,
    "export the model": "export {out}/dual --out {out}/model",
    "evaluate the model and the TF-IDF baseline": "eval retrieval {out}/model"
    " --data {out}/corpus/dev --baseline tfidf --out {out}/retrieval.json",
    "evaluate the model without layers": "eval retrieval {out}/table_model"
    " --data {out}/corpus/dev --out {out}/retrieval_table.json",
    "embed sentences for the report": "embed {out}/model {out}/sentences.txt"
    " --out {out}/sentences.npy",
}


class Stage(NamedTuple):
    """A command of the demo: its name in the log, and the words after `labse`."""

    name: str
    command: list[str]


def stages(out: Path, config: str, table_config: str) -> list[Stage]:
    """Returns all commands; the encoder of `config` starts from the encoder of `table_config`."""
    places = {"out": out, "config": config, "table_config": table_config}
    return [
        Stage(name, [word.format(**places) for word in command.split()])
        for name, command in _COMMANDS.items()
    ]


def run_stages(
    out: Path,
    stages: Sequence[Stage],
    run_command: Callable[[Sequence[str]], int],
    *,
    before: Mapping[str, Callable[[], None]] = MappingProxyType({}),
) -> tuple[int, dict[str, float]]:
    """Runs the stages in the folder `out`, and resumes after an interruption.

    `stages.json` in the folder records the completed commands. An interrupted training run resumes
    from its last checkpoint.

    Args:
      run_command: runs a command and returns its exit status.
      before: functions by stage name, called before the stage to prepare its input.

    Returns:
      0, or the exit status of the stage that failed; and the seconds that each stage took.

    Raises:
      InputError: if the folder holds something else, or is in use by another demo.
    """
    file, remedy = out / "stages.json", "choose another --out"
    if out.is_dir() and any(out.iterdir()) and not file.exists():
        problem = "the output folder is not empty and holds no demo"
        raise InputError(problem, path=out, remedy=remedy)
    with locked(out):
        record = json.loads(file.read_text("utf-8")) if file.exists() else {}
        write_json(file, record, overwrite=True)
        for number, stage in enumerate(stages, start=1):
            title = f"[{number}/{len(stages)}] {stage.name}"
            if ended := record.get(stage.name):
                if ended["command"] != stage.command:
                    problem = f"'{stage.name}' was completed here with a different command"
                    raise InputError(problem, path=out, remedy=remedy)
                _log.info("%s: already done", title)
                continue
            _log.info("\n%s\n$ labse %s", title, shlex.join(stage.command))
            start = time.monotonic()
            before.get(stage.name, lambda: None)()
            if status := run_command(_afresh(stage.command)):
                return status, {}
            seconds = round(time.monotonic() - start, 1)
            record[stage.name] = {"command": stage.command, "seconds": seconds}
            write_json(file, record, overwrite=True)
        return 0, {stage.name: record[stage.name]["seconds"] for stage in stages}


def _afresh(command: list[str]) -> list[str]:
    """Returns the command that replaces what an interrupted one left; a run dir is resumed."""
    if command[0] == "train":
        return command
    place = command.index("--") if "--" in command else len(command)
    return [*command[:place], "--overwrite", *command[place:]]
