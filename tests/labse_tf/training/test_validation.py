"""When a run measures, what it keeps as the best, and when it stops; also after a restart."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.training.runs.checkpoints import read_best
from labse_tf.training.validation import Course, Validation

STEPS, INTERVAL = 95, 10


class Run:
    """A course without training: the accuracies come from a table, a step each."""

    def __init__(self, folder, *, patience=0, keep=True, measured=(), lower=False):
        self.step = tf.Variable(0, dtype=tf.int64)
        validation = Validation(
            interval=INTERVAL,
            best=tf.train.Checkpoint(step=self.step) if keep else None,
            measure=("retrieval", "accuracy"),
            lower_is_better=lower,
            patience=patience,
        )
        folders = {"checkpoints": folder, "own_folder": folder}
        run = {"strategy": tf.distribute.get_strategy(), "step": self.step, "steps": STEPS}
        self.course = Course(validation, measured=set(measured), **run, **folders)

    def measure(self, accuracies):
        """Notes them until the course is over; returns the steps noted."""
        noted = []
        for step, accuracy in accuracies.items():
            if self.course.is_over:
                break
            self.step.assign(step)
            self.course.note({"retrieval": {"accuracy": accuracy}})
            noted.append(step)
        return noted


def best_of(folder):
    best = read_best(folder)
    return best.step, best.accuracy


def test_it_measures_at_multiples_and_at_the_end_but_not_again_after_a_restart(tmp_path):
    course = Run(tmp_path).course
    assert [step for step in range(STEPS + 1) if course.is_due(step)] == [*range(10, 91, 10), 95]
    found = [course.next_due(step) for step in (0, 9, 10, 13, 89, 90, 94)]
    assert found == [10, 10, 20, 20, 90, 95, 95]
    course = Run(tmp_path, measured=[10, 20]).course
    # A killed run had reached 30, but not measured.
    assert not course.is_due(20) and course.is_due(30)
    finished = Run(tmp_path, measured=[*range(10, 91, 10), 95]).course
    assert not finished.is_due(95)


def test_the_best(tmp_path):
    for number, (table, best, options) in enumerate((
        ({10: 0.2, 20: 0.5, 30: 0.5, 40: 0.4}, 20, {}),  # The first of equals.
        ({10: 0.5, 20: 0.25, 30: 0.25, 40: 0.75}, 20, {"lower": True}),
        ({10: 0.0}, 10, {}),  # Kept when there is no other.
    )):  # fmt: skip
        folder = tmp_path / str(number)
        run = Run(folder, **options)
        run.measure(table)
        assert run.course.best == read_best(folder)
        assert best_of(folder) == (best, table[best])
        saved = tf.train.load_variable(run.course.best.path, "step/.ATTRIBUTES/VARIABLE_VALUE")
        assert saved == best


def test_patience(tmp_path):
    table = {10: 0.1, 20: 0.3, 30: 0.2, 40: 0.4, 50: 0.4, 60: 0.3, 70: 0.1, 80: 0.0, 90: 0.1, 95: 0}
    # A better one at 40 starts the count again.
    for patience, last in ((1, 30), (2, 60), (3, 70), (0, 95)):
        assert Run(tmp_path / str(patience), patience=patience).measure(table)[-1] == last


def test_a_restart_knows_the_best_and_how_long_it_waited(tmp_path):
    table = {10: 0.1, 20: 0.3, 30: 0.2}
    Run(tmp_path, patience=3).measure(table)
    # Set back to step 10 with the best of step 20 saved: step 20 is measured again, as equal.
    set_back = Run(tmp_path, patience=2, measured=[10])
    assert set_back.course.waited == 0
    assert set_back.measure({20: 0.3, 30: 0.2, 40: 0.1, 50: 0.9}) == [20, 30, 40]
    resumed = Run(tmp_path, patience=3, measured=table)
    assert best_of(tmp_path) == (20, 0.3) and resumed.course.waited == 1
    assert resumed.measure({40: 0.2, 50: 0.1, 60: 0.9}) == [40, 50]
    assert Run(tmp_path, patience=3, measured=[10, 20, 30, 40, 50]).course.is_over


def test_pretraining_keeps_none_and_never_stops(tmp_path):
    run = Run(tmp_path, keep=False)
    assert run.measure({10: 0.1, 20: 0.1}) == [10, 20]
    assert run.course.best is None and list(tmp_path.iterdir()) == []


def test_a_damaged_best_one_is_named_and_replaced(tmp_path, caplog):
    for number, (file, problem) in enumerate((
        ("ckpt-10.data*", "best/ckpt-10 is damaged ("),
        ("best.json", "the record of the best checkpoint is damaged"),
    )):  # fmt: skip
        folder = tmp_path / str(number)
        Run(folder).measure({10: 0.9})
        (damaged,) = (folder / "best").glob(file)
        damaged.write_bytes(b"")
        resumed = Run(folder, measured=[10])
        assert problem in caplog.text
        resumed.measure({20: 0.1})
        assert best_of(folder) == (20, 0.1)
