"""Which tests `make check` takes for a change."""

from __future__ import annotations

from affected import affected, imports_of
from repository import ROOT

FILES = {
    str(path.relative_to(ROOT)): imports_of(path) for path in (ROOT / "tests").rglob("test_*.py")
}


LOSSES, TRAINING = "tests/labse_tf/test_losses.py", "tests/labse_tf/training"
CASES = [
    # The loss: its own tests, the trainers' that import it.
    ("labse_tf/losses.py", {LOSSES: 0, f"{TRAINING}/test_gradient_cache.py": 1}),
    # A filter: the tests of its folder, which are found by name and import none.
    ("beam_pipelines/filters/markup.py", {"tests/beam_pipelines/filters/test_plug_ins.py": 0}),
    ("docs/training.md", {"tests/test_recipes.py": 0}),
    ("tests/test_pinned.py", {"tests/test_pinned.py": 0}),
    ("tests/helpers/toy_network.py", {"tests/labse_tf/model/test_encoder.py": 1}),
    (
        "tests/labse_tf/systems/cds/conftest.py",
        {"tests/labse_tf/systems/cds/test_cds_pipelines.py": 1},
    ),
]


def test_a_change_takes_what_it_can_break():
    for changed, near in CASES:
        found = affected([changed], FILES)
        assert {file: found.get(file) for file in near} == near
        assert "tests/vocab/test_wordpiece.py" not in found
        assert (LOSSES in found) == (LOSSES in near)


def test_imports_anywhere_in_a_file(tmp_path):
    path = tmp_path / "test_it.py"
    lines = ["import a.b", "def test():", "    from c import d", "    from . import e", "    'f:g'"]
    path.write_text("\n".join(lines), "utf-8")
    assert imports_of(path) == {"a.b", "c", "c.d", "f"}
