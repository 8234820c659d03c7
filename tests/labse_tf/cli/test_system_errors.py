"""An error of the system is one line that names the file, wherever it comes from."""

import errno
import itertools
import os

import forked
import pytest
from apache_beam.io.filesystem import BeamIOError
from text_files import write_lines

from labse_tf.cli.main import main
from labse_tf.errors import of_system

SENTENCE = "The river number {0} rises here.	Der Fluss Nummer {0} entspringt hier."
TWO = ("--", "--direct_running_mode=multi_processing", "--direct_num_workers=2")


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "de.tsv"
    write_lines(path, [SENTENCE.format(number) for number in range(3000)])
    return path


@pytest.mark.parametrize(
    "beam",
    [pytest.param((), id="one process"), pytest.param(TWO, id="two", marks=pytest.mark.slow)],
)
def test_a_full_disk_in_a_worker(pairs, tmp_path, beam):
    """A limit on the size of a file stands for the disk."""
    out = tmp_path / "out"
    command = (*forked.LABSE, "corpus", "filter-bitext", pairs, "--out", out, *beam)
    full = forked.run(*command, file_size=5000, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    line = full.stderr.splitlines()[-1]
    assert full.returncode == 2 and line.startswith(f"labse: error: {out}"), full.stderr
    assert os.strerror(errno.EFBIG) in line and "make room" in line
    assert os.listdir(tmp_path) == [pairs.name]


FILTER_BITEXT = "corpus filter-bitext IN --out OUT"


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (FILTER_BITEXT, "/proc/labse"),
        (FILTER_BITEXT, "n" * 252),
        (FILTER_BITEXT, "de.tsv/a/b"),
        ("vocab build IN --out OUT", "n" * 300),
        ("vocab build IN --out v.txt --counts OUT", "/sys/labse"),
    ],
)
def test_a_place_that_cannot_be_written(pairs, tmp_path, monkeypatch, capsys, command, place):
    monkeypatch.chdir(tmp_path)
    words = {"IN": str(pairs), "OUT": place}
    assert main([words.get(word, word) for word in command.split()]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    # The error of a path through a file may name that file.
    assert line.startswith(("labse: error: " + place[:200], "labse: error: de.tsv"))
    assert set(os.listdir(tmp_path)) <= {pairs.name, "v.txt"}


@pytest.mark.parametrize(
    "command",
    ["corpus filter-bitext IN --out out", "vocab coverage IN de.txt", "eval compare IN de.txt"],
)
def test_an_input_that_may_not_be_read(pairs, tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "de.txt", ["Hallo"])
    arguments = [str(pairs) if word == "IN" else word for word in command.split()]
    # Another user may not read the modules that it imports here.
    main([word.replace("de.tsv", "de.txt") for word in arguments])
    pairs.chmod(0)
    tmp_path.chmod(0o777)
    user = os.geteuid()
    if user == 0:
        for folder in tmp_path.parents:
            if folder.name.startswith(("pytest-", "popen-")):
                folder.chmod(0o755)
        os.seteuid(65534)
    try:
        assert main([*arguments]) == 2
    finally:
        if user == 0:
            os.seteuid(0)
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"labse: error: {pairs}: ") and "Permission denied" in line


PATH = "/data/de.tsv"


def caused(cause):
    error = ValueError("conversion failed")
    error.__cause__ = cause
    return error


def in_a_worker(error):
    return RuntimeError(
        f"Traceback (most recent call last):\n  File 'x.py'\n\n{type(error).__name__}: {error} "
        "[while running 'FilterJob/Write']\n"
    )


def test_each_error_of_the_system():
    names = "ENOSPC EDQUOT EFBIG EROFS EACCES EPERM ENAMETOOLONG ENOTDIR EISDIR ENOENT ELOOP EIO"
    numbers = [getattr(errno, name) for name in names.split()]
    for number, wrapped in itertools.product(numbers, (lambda one: one, caused, in_a_worker)):
        said = of_system(wrapped(OSError(number, os.strerror(number), PATH)))
        assert said.path == PATH and os.strerror(number) in said.problem and said.remedy
        nameless = wrapped(OSError(number, os.strerror(number)))
        assert of_system(nameless, path="out").path == "out"
        assert of_system(nameless).path is None


def test_errors_of_libraries():
    import tensorflow as tf

    denied = BeamIOError("Match operation failed", {PATH: PermissionError(13, "Permission denied")})
    assert of_system(denied, path="out").path == "out"
    failed = tf.errors.FailedPreconditionError(None, None, f"{PATH}; Read-only file system")
    assert of_system(failed).path == PATH
    full = f"{{{{function_node save}}}} {PATH}; No space left on device [Op:SaveV2]"
    assert of_system(tf.errors.ResourceExhaustedError(None, None, full)).path == PATH


def test_other_errors_are_no_fault_of_the_user():
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    own = [ValueError("a bug"), KeyError("[Errno 99]"), OSError("said by a library")]
    bug = ValueError("while a system error is handled")
    bug.__context__ = FileNotFoundError(errno.ENOENT, "No such file or directory", PATH)
    for error in (refused, *own, caused(KeyError("x")), RuntimeError(""), bug):
        assert of_system(error) is None
