"""`labse embed --normalize`: lines are embedded in one form of Unicode."""

from __future__ import annotations

import unicodedata

import numpy as np
from hashed_encoders import HashedCharacters  # noqa: F401  Named on the command line.

from labse_tf.cli.main import main

TEXT = "Hôm nay trời đẹp quá!\n안녕하세요 여러분\nL'élève a déjà reçu\nガラスがぱりん\n"


def test_lines_are_embedded_in_one_form(tmp_path, caplog):
    for form in ("NFC", "NFD"):
        (tmp_path / f"{form}.txt").write_text(unicodedata.normalize(form, TEXT), "utf-8")

    def embed(name, *more):
        out = tmp_path / f"{name}{len(more)}.npy"
        command = ["embed", "hashed_encoders:HashedCharacters", str(tmp_path / f"{name}.txt")]
        assert main([*command, "--out", str(out), *more]) == 0
        return np.load(out)

    expected = embed("NFC")
    assert "--normalize" not in caplog.text
    assert not np.allclose(embed("NFD"), expected)
    assert caplog.text.count("--normalize") == 1
    np.testing.assert_array_equal(embed("NFD", "--normalize", "NFC"), expected)
