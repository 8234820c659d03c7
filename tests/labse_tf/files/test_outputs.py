"""Outputs appear whole or not at all, and never on what is there."""

from __future__ import annotations

import errno
import fcntl
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from labse_tf.errors import InputError
from labse_tf.files.outputs import (
    check_free,
    check_free_file,
    locked,
    plot_format,
    whole_dir,
    whole_file,
)

BOTH = pytest.mark.parametrize("whole", [whole_dir, whole_file])


def tree(folder):
    """Every path below the folder, with the text of files."""
    return {
        str(path.relative_to(folder)): path.read_text("utf-8") if path.is_file() else None
        for path in folder.rglob("*")
    }


def write(path, text, *, folder=None):
    """Writes a file, or a folder with one: what is there, or as `folder` says."""
    if path.is_dir() if folder is None else folder:
        path.mkdir(exist_ok=True)
        path /= "a.txt"
    path.write_text(text)


def content(path):
    return {one.read_text() for one in (path.iterdir() if path.is_dir() else [path])}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Stop(BaseException):
    """As KeyboardInterrupt: no Exception."""


@BOTH
def test_failure_leaves_what_was_there(tmp_path, whole):
    for old, failure in itertools.product((False, True), (ValueError, Stop)):
        if old:
            write(tmp_path / "out", "old", folder=whole is whole_dir)
        before = tree(tmp_path)
        with pytest.raises(failure), whole(tmp_path / "out", overwrite=old) as partial:
            write(partial, "half")
            assert old or not (tmp_path / "out").exists()
            raise failure
        assert tree(tmp_path) == before
    # Missing parents are made.
    with whole(tmp_path / "a" / "b" / "out") as partial:
        write(partial, "x")
    assert content(tmp_path / "a" / "b" / "out") == {"x"}


def test_overwriting_replaces_the_whole_folder_or_file(tmp_path):
    for name in ("out/old.txt", "out.txt", "out2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("old")
    for name in ("out", "out2"):  # A folder replaces a file too.
        with whole_dir(tmp_path / name, overwrite=True) as partial:
            write(partial, "new")
    with whole_file(tmp_path / "out.txt", overwrite=True) as partial:
        partial.write_text("new")
    folders = {"out": None, "out/a.txt": "new", "out2": None, "out2/a.txt": "new"}
    assert tree(tmp_path) == {**folders, "out.txt": "new"}


def refused(call, path, **options):
    with pytest.raises(InputError) as caught:
        if call in (check_free, check_free_file):
            call(path, **options)
        else:
            with call(path, **options):
                pytest.fail("the block ran")
    return caught.value


def test_what_is_there_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / ".hidden").write_text("old")
    before = tree(tmp_path)
    for call in (check_free, whole_dir, check_free_file, whole_file):
        is_for_folders = call in (check_free, whole_dir)
        error = refused(call, tmp_path / "file")
        assert "exists already" in error.problem and "--overwrite" in error.remedy
        error = refused(call, tmp_path / "full")
        assert ("is not empty" if is_for_folders else "is a folder") in error.problem
        # To overwrite a folder by a file is no remedy.
        assert ("--overwrite" in error.remedy) == is_for_folders
        error = refused(call, tmp_path / "file" / "below", overwrite=True)
        assert error.problem == "is a file, not a folder" and error.path == str(tmp_path / "file")
    assert tree(tmp_path) == before
    # An empty folder is free for a folder only.
    empty = tmp_path / "empty"
    empty.mkdir()
    assert check_free(empty) == empty
    for overwrite in (False, True):
        assert "is a folder" in refused(whole_file, empty, overwrite=overwrite).problem
    with whole_dir(empty) as partial:
        write(partial, "x")
    assert content(empty) == {"x"}


@BOTH
def test_of_two_writers_the_second_is_refused_and_what_appeared_meanwhile_stays(tmp_path, whole):
    out = tmp_path / "здесь [v2]"
    for overwrite in (False, True):
        with whole(out, overwrite=overwrite) as partial:
            write(partial, "first")
            assert "another process" in refused(whole, out, overwrite=overwrite).problem
        assert content(out) == {"first"} and names(tmp_path) == [out.name]
    out = tmp_path / "out"
    with pytest.raises(InputError), whole(out) as partial:
        write(partial, "first")
        write(out, "of another program", folder=whole is whole_dir)
    assert content(out) == {"of another program"}


KILLED = """
import os, sys
from labse_tf.files.outputs import whole_dir
with whole_dir(sys.argv[1]) as partial:
    (partial / "stale").write_text("stale")
    (partial.parent / "scratch").write_text("a copy")
    os.kill(os.getpid(), 9)
"""


def test_a_killed_writer_is_in_nobodys_way(tmp_path):
    out = tmp_path / "out"
    assert subprocess.run([sys.executable, "-c", KILLED, out]).returncode == -9
    assert not out.exists()
    with whole_dir(out) as partial:
        write(partial, "whole")
    assert content(out) == {"whole"} and names(tmp_path) == ["out"]


@BOTH
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
    assert names(real.parent) == ["real"]


def test_a_lock_on_what_is_elsewhere_by_now_is_none_and_some_file_systems_have_none(
    tmp_path, monkeypatch
):
    for change in (Path.rmdir, lambda folder: folder.rename(f"{folder}.moved")):
        monkeypatch.setattr(fcntl, "flock", lambda *_, change=change: change(tmp_path / "work"))
        with pytest.raises(InputError, match="another process"), locked(tmp_path / "work"):
            pytest.fail("the block ran")

    def flock(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with whole_file(tmp_path / "out") as partial:
        partial.write_text("whole")
    assert (tmp_path / "out").read_text() == "whole"


def test_the_name_of_a_plot_chooses_its_format():
    found = [plot_format(name) for name in ("x/a.png", "b.SVG", "c.d.pdf")]
    assert found == ["png", "svg", "pdf"]
    for name in ("a.jpg", "png", "a.png.partial"):
        with pytest.raises(InputError, match="unknown plot format"):
            plot_format(name)
