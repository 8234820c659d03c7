"""Outputs appear whole or not at all, and never on what is there."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from labse_tf.errors import InputError
from labse_tf.files.outputs import check_free, check_free_file, locked, whole_dir, whole_file


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


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("whole", [whole_dir, whole_file])
def test_one_of_two_writers_is_refused(tmp_path, whole, overwrite):
    out = tmp_path / "здесь [v2]"
    with whole(out, overwrite=overwrite) as partial:
        write(partial, "first")
        assert "another process" in refused(whole, out, overwrite=overwrite).problem
    assert content(out) == {"first"}
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize("whole", [whole_dir, whole_file])
def test_what_appeared_meanwhile_stays(tmp_path, whole):
    out = tmp_path / "out"
    with pytest.raises(InputError), whole(out) as partial:
        write(partial, "first")
        write(out, "of another program", folder=whole is whole_dir)
    assert content(out) == {"of another program"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# Takes turns with others; whoever gets the output writes its number into each of three files.
WRITER = """
import sys
from pathlib import Path
from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_dir, whole_file

own, out, kind = sys.argv[1:]
for _ in range(60):
    try:
        with (whole_dir if kind == "whole_dir" else whole_file)(out, overwrite=True) as partial:
            if kind == "whole_dir":
                for name in "abc":
                    (partial / name).write_text(own)
            else:
                partial.write_text(own * 3)
    except InputError as error:
        assert "another process" in error.problem, error
"""


@pytest.mark.parametrize("whole", [whole_dir, whole_file])
def test_many_writers_leave_the_output_of_one(tmp_path, whole):
    out = tmp_path / "out"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(own), str(out), whole.__name__])
        for own in range(4)
    ]
    assert [writer.wait() for writer in writers] == [0] * 4
    found = sorted(one.read_text() for one in out.iterdir()) if out.is_dir() else [*out.read_text()]
    assert len(found) == 3 and len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


KILLED = """
import os, sys
from labse_tf.files.outputs import whole_dir, whole_file
with (whole_dir if sys.argv[2] == "whole_dir" else whole_file)(sys.argv[1]) as partial:
    (partial / "stale" if partial.is_dir() else partial).write_text("stale")
    (partial.parent / "scratch").write_text("a copy")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("whole", [whole_dir, whole_file])
def test_a_killed_writer_is_in_nobodys_way(tmp_path, whole):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "out"), whole.__name__]
    assert subprocess.run(command).returncode == -9
    assert not (tmp_path / "out").exists()
    with whole(tmp_path / "out") as partial:
        write(partial, "whole")
    assert content(tmp_path / "out") == {"whole"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_an_older_version_left_is_in_nobodys_way(tmp_path):
    (tmp_path / "out.partial").write_text("half")
    with whole_file(tmp_path / "out") as partial:
        partial.write_text("whole")
    assert tree(tmp_path) == {"out": "whole"}


@pytest.mark.parametrize("whole", [whole_dir, whole_file])
@pytest.mark.parametrize("there", [True, False])
def test_where_a_link_leads_is_replaced_and_locked(tmp_path, whole, there):
    real = tmp_path / "disk" / "real"
    real.parent.mkdir()
    if there:
        write(real, "old", folder=whole is whole_dir)
    (tmp_path / "link").symlink_to(real)
    with whole(tmp_path / "link", overwrite=True) as partial:
        write(partial, "new")
        assert "another process" in refused(whole, real, overwrite=True).problem
    assert (tmp_path / "link").is_symlink() and content(real) == {"new"}
    assert [path.name for path in real.parent.iterdir()] == ["real"]


@pytest.mark.parametrize("change", [Path.rmdir, lambda folder: folder.rename(f"{folder}.moved")])
def test_a_lock_on_what_is_elsewhere_by_now_is_none(tmp_path, monkeypatch, change):
    def flock(descriptor, operation):
        change(tmp_path / "work")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(InputError, match="another process"), locked(tmp_path / "work"):
        pytest.fail("the block ran")


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with whole_file(tmp_path / "out") as partial:
        partial.write_text("whole")
    assert tree(tmp_path) == {"out": "whole"}


def write(path, text, *, folder=None):
    """Writes a file, or a folder with one: what is there, or as `folder` says."""
    if path.is_dir() if folder is None else folder:
        path.mkdir(exist_ok=True)
        path /= "a.txt"
    path.write_text(text)


def content(path):
    return {one.read_text() for one in (path.iterdir() if path.is_dir() else [path])}
