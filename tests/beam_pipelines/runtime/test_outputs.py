"""The folder for the parts of a file: of one job, and removed with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from beam_pipelines.runtime.storage import parts_folder
from labse_tf.errors import InputError


@pytest.mark.parametrize("name", ["scored.tsv", "оценки [v2].tsv", "*.tsv", "q?"])
def test_parts_are_of_one_job(tmp_path, name):
    (tmp_path / f"{name}.parts").mkdir()
    (tmp_path / f"{name}.parts" / "of a killed job.tsv").touch()
    (tmp_path / "other.parts").mkdir()
    path = str(tmp_path / name)
    with parts_folder(path) as folder:
        assert list(Path(folder).iterdir()) == []
        Path(folder, "de.tsv").touch()
        with pytest.raises(InputError, match="another process"), parts_folder(path):
            pytest.fail("the block ran")
        assert [one.name for one in Path(folder).iterdir()] == ["de.tsv"]
    assert [one.name for one in tmp_path.iterdir()] == ["other.parts"]
