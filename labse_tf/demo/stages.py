"""The stages of the demo: the commands that a user would type, in order."""

from __future__ import annotations

import json
import logging
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from labse_tf.errors import InputError
from labse_tf.files.outputs import locked, whole_file

_log = logging.getLogger("labse")

VOCAB_SIZE = 60_000
# For Beam. More than two processes would save little, and each takes 300 MB.
_TWO_PROCESSES = ["--", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]


class Stage(NamedTuple):
    """A command of the demo.

    Attributes:
      name: logged when it starts.
      command: the words after `labse`.
    """

    name: str
    command: list[str]


def stages(out: Path, config: str, table_config: str) -> list[Stage]:
    """Returns all commands of the demo, up to `out`/sentences.npy.

    Args:
      out: the demo's folder.
      config: of the encoder with layers.
      table_config: of the encoder without layers that it starts from.
    """
    corpus, vocab = out / "corpus", out / "vocab.txt"
    monolingual, bitext = out / "clean_monolingual", out / "clean_bitext"
    table_run, trained = out / "table", out / "dual"
    use_bitext = ["--set", f"train.bitext=[{bitext}]"]
    commands = [
        ("the corpus", ["corpus", "demo", corpus]),
        (
            "filter the monolingual text",
            ["corpus", "filter-monolingual", corpus / "monolingual", "--out", monolingual],
        ),
        (
            "filter the translation pairs",
            # These are human translations, and many are single terms, for which language
            # identification is unreliable: 0.3, the default, would lose 8 % of them.
            ["corpus", "filter-bitext", corpus / "bitext", "--out", bitext]
            + ["--max-language-doubt", "0.5", *_TWO_PROCESSES],
        ),
        (
            "learn the vocabulary",
            ["vocab", "build", monolingual, bitext, "--out", vocab, "--vocab-size", VOCAB_SIZE]
            + _TWO_PROCESSES,
        ),
        (
            "train a dual encoder without layers: a sentence is the average of its token vectors",
            ["train", table_config, "--run-dir", table_run, *use_bitext]
            + ["--set", f"tokenizer.vocab_file={vocab}"],
        ),
        (
            "export it",
            ["export", table_run, "--out", out / "table_model", "--format", "hub", "--no-verify"],
        ),
        (
            "put layers on top, and train on",
            ["train", config, "--run-dir", trained, "--init", table_run, *use_bitext],
        ),
        ("export the model", ["export", trained, "--out", out / "model"]),
        (
            "evaluate the model and the TF-IDF baseline",
            ["eval", "retrieval", out / "model", "--data", corpus / "dev"]
            + ["--baseline", "tfidf", "--out", out / "retrieval.json"],
        ),
        (
            "evaluate the model without layers",
            ["eval", "retrieval", out / "table_model", "--data", corpus / "dev"]
            + ["--out", out / "retrieval_table.json"],
        ),
        (
            "embed sentences for the report",
            ["embed", out / "model", out / "sentences.txt", "--out", out / "sentences.npy"],
        ),
    ]
    return [Stage(name, [str(word) for word in command]) for name, command in commands]


class Demo:
    """Runs the stages in a folder, and resumes after an interruption.

    `stages.json` in the folder records the completed commands. An interrupted training run resumes
    from its last checkpoint.
    """

    def __init__(self, out: Path, run_command: Callable[[Sequence[str]], int]) -> None:
        self._record_file = out / "stages.json"
        self._out = out
        self._run_command = run_command
        self.seconds: dict[str, float] = {}

    def run(self, stages: Sequence[Stage], *, before: dict[str, Callable[[], None]]) -> int:
        """Runs the remaining stages; returns 0, or the exit status of the stage that failed.

        Args:
          stages: all stages, in order.
          before: functions by stage name, called before the stage to prepare its input.

        Raises:
          InputError: if the folder holds something else, or is in use by another demo.
        """
        if self._out.is_dir() and any(self._out.iterdir()) and not self._record_file.exists():
            raise InputError(
                "the output folder is not empty and holds no demo",
                path=self._out,
                remedy="choose another --out",
            )
        with locked(self._out):
            return self._run_all(stages, before)

    def _run_all(self, stages: Sequence[Stage], before: dict[str, Callable[[], None]]) -> int:
        record = self._read_record()
        self._write_record(record)
        for number, stage in enumerate(stages, start=1):
            title = f"[{number}/{len(stages)}] {stage.name}"
            ended = record.get(stage.name)
            if ended is not None and ended["command"] != stage.command:
                raise InputError(
                    f"'{stage.name}' was completed here with a different command",
                    path=self._out,
                    remedy="choose another --out",
                )
            if ended is not None:
                _log.info("%s: already done", title)
            else:
                _log.info("\n%s\n$ labse %s", title, shlex.join(stage.command))
                start = time.monotonic()
                before.get(stage.name, lambda: None)()
                status = self._run_command(_afresh(stage.command))
                if status:
                    return status
                ended = {"command": stage.command, "seconds": round(time.monotonic() - start, 1)}
                record[stage.name] = ended
                self._write_record(record)
            self.seconds[stage.name] = ended["seconds"]
        return 0

    def _read_record(self) -> dict[str, dict]:
        if not self._record_file.exists():
            return {}
        return json.loads(self._record_file.read_text("utf-8"))

    def _write_record(self, record: dict[str, dict]) -> None:
        with whole_file(self._record_file, overwrite=True) as partial:
            partial.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def _afresh(command: list[str]) -> list[str]:
    """Returns the command that replaces what an interrupted one left; a run dir is resumed."""
    if command[0] == "train":
        return command
    place = command.index("--") if "--" in command else len(command)
    return [*command[:place], "--overwrite", *command[place:]]
