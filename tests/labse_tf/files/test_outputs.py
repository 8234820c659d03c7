"""Outputs appear whole or not at all, and never on what is there."""

from __future__ import annotations

import pytest

from labse_tf.errors import InputError
from labse_tf.files.outputs import check_free, check_free_file, whole_dir, whole_file


def tree(folder):
    """Every path below the folder, with the text of files."""
    return {
        str(path.relative_to(folder)): path.read_text("utf-8") if path.is_file() else None
        for path in folder.rglob("*")
    }


class Stop(BaseException):
    """As KeyboardInterrupt: no Exception."""


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, Stop])
def test_failure_leaves_no_file(tmp_path, failure):
    with pytest.raises(failure), whole_file(tmp_path / "out.txt") as partial:
        partial.write_text("half")
        raise failure
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, Stop])
def test_failure_leaves_no_folder(tmp_path, failure):
    with pytest.raises(failure), whole_dir(tmp_path / "out") as partial:
        (partial / "inner").mkdir()
        (partial / "inner" / "a.txt").write_text("half")
        raise failure
    assert tree(tmp_path) == {}


def test_failure_keeps_what_was_to_be_replaced(tmp_path):
    (tmp_path / "out.txt").write_text("old")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("old")
    before = tree(tmp_path)
    with pytest.raises(ValueError), whole_file(tmp_path / "out.txt", overwrite=True) as partial:
        partial.write_text("half")
        raise ValueError
    with pytest.raises(ValueError), whole_dir(tmp_path / "out", overwrite=True) as partial:
        (partial / "b.txt").write_text("half")
        raise ValueError
    assert tree(tmp_path) == before


def test_nothing_is_there_before_the_end(tmp_path):
    with whole_file(tmp_path / "out.txt") as partial:
        partial.write_text("whole")
        assert not (tmp_path / "out.txt").exists()
    with whole_dir(tmp_path / "out") as partial:
        (partial / "a.txt").write_text("whole")
        assert not (tmp_path / "out").exists()
    assert tree(tmp_path) == {"out.txt": "whole", "out": None, "out/a.txt": "whole"}


def test_missing_parents_are_made(tmp_path):
    with whole_file(tmp_path / "a" / "b" / "out.txt") as partial:
        partial.write_text("x")
    with whole_dir(tmp_path / "c" / "d" / "out") as partial:
        (partial / "y").write_text("z")
    assert (tmp_path / "a" / "b" / "out.txt").read_text() == "x"
    assert (tmp_path / "c" / "d" / "out" / "y").read_text() == "z"


def test_overwrite_replaces_the_whole_folder(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    with whole_dir(tmp_path / "out", overwrite=True) as partial:
        (partial / "new.txt").write_text("new")
    assert tree(tmp_path) == {"out": None, "out/new.txt": "new"}


def test_a_folder_replaces_a_file_and_a_file_replaces_a_file(tmp_path):
    (tmp_path / "out").write_text("a file")
    with whole_dir(tmp_path / "out", overwrite=True) as partial:
        (partial / "new.txt").write_text("new")
    (tmp_path / "out.txt").write_text("old")
    with whole_file(tmp_path / "out.txt", overwrite=True) as partial:
        partial.write_text("new")
    assert tree(tmp_path) == {"out": None, "out/new.txt": "new", "out.txt": "new"}


def test_what_a_killed_process_left_is_no_part_of_the_output(tmp_path):
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "stale.txt").write_text("stale")
    with whole_dir(tmp_path / "out") as partial:
        (partial / "new.txt").write_text("new")
    assert tree(tmp_path) == {"out": None, "out/new.txt": "new"}


def refused(call, path, **options):
    with pytest.raises(InputError) as caught:
        if call in (check_free, check_free_file):
            call(path, **options)
        else:
            with call(path, **options):
                pytest.fail("the block ran")
    return caught.value


@pytest.mark.parametrize(
    "call, folder_problem",
    [
        (check_free, "the output folder is not empty"),
        (whole_dir, "the output folder is not empty"),
        (check_free_file, "is a folder"),
        (whole_file, "is a folder"),
    ],
)
def test_what_is_there_is_refused_before_any_work(tmp_path, call, folder_problem):
    (tmp_path / "file").write_text("old")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / ".hidden").write_text("old")
    before = tree(tmp_path)
    error = refused(call, tmp_path / "file")
    assert "exists already" in error.problem and "--overwrite" in error.remedy
    error = refused(call, tmp_path / "full")
    assert error.problem == folder_problem
    # To overwrite a folder by a file is no remedy.
    assert ("--overwrite" in error.remedy) == (call in (check_free, whole_dir))
    error = refused(call, tmp_path / "file" / "below", overwrite=True)
    assert error.problem == "is a file, not a folder" and error.path == str(tmp_path / "file")
    assert tree(tmp_path) == before


def test_an_empty_folder_is_free_for_a_folder_only(tmp_path):
    (tmp_path / "empty").mkdir()
    assert check_free(tmp_path / "empty") == tmp_path / "empty"
    for overwrite in (False, True):
        assert "is a folder" in refused(whole_file, tmp_path / "empty", overwrite=overwrite).problem
    with whole_dir(tmp_path / "empty") as partial:
        (partial / "a").write_text("x")
    assert tree(tmp_path) == {"empty": None, "empty/a": "x"}
