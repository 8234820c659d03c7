"""Every task shows an example in its docstring, which is true."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from hashed_encoders import HashedCharacters

from labse_tf.evaluation.task import find_task, task_names


@pytest.mark.parametrize("name", task_names())
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = find_task(name)
    assert ">>> " in task.evaluate.__doc__
    result = doctest.testmod(task, extraglobs={"Path": Path, "encoder": HashedCharacters()})
    assert result.attempted > 0 and result.failed == 0
