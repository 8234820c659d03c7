"""Checkpoints that are damaged, and the best one beside the rolling ones."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.training.runs.checkpoints import (
    find_damage,
    make_newest,
    newest_whole,
    read_best,
    remove_unfinished,
    save_best,
)

DATA = ".data-00000-of-00001"


def flip(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES = {
    "data_cut_off": (DATA, lambda content: content[:-1]),
    "data_bit_flipped": (DATA, flip),
    "data_gone": (DATA, None),
    "index_cut_off": (".index", lambda content: content[:-1]),
    "index_zeros": (".index", lambda content: bytes(len(content))),
}


def damage(folder, name, kind):
    ending, change = DAMAGES[kind]
    file = folder / f"{name}{ending}"
    file.write_bytes(change(file.read_bytes())) if change else file.unlink()


@pytest.fixture
def model():
    numbers = tf.range(1000, dtype=tf.float32)
    return tf.train.Checkpoint(encoder=tf.Variable(numbers), optimizer=tf.Variable(numbers))


@pytest.fixture
def folder(tmp_path, model):
    """Checkpoints of steps 5, 10 and 100."""
    manager = tf.train.CheckpointManager(model, str(tmp_path), max_to_keep=3)
    for step in (5, 10, 100):
        model.encoder.assign(tf.fill([1000], float(step)))
        manager.save(checkpoint_number=step)
    return tmp_path


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_one_is_named_and_the_one_before_it_found(folder, caplog, kind):
    # By number: ckpt-5 is the last one by name.
    assert newest_whole(folder) == str(folder / "ckpt-100")
    damage(folder, "ckpt-100", kind)
    assert newest_whole(folder) == str(folder / "ckpt-10")
    assert f"{folder / 'ckpt-100'} is damaged (" in caplog.text
    (folder / "ckpt-10.index").unlink()
    assert newest_whole(folder) == str(folder / "ckpt-5")


def test_a_first_save_that_was_killed_is_none(tmp_path, model):
    """The index is there, not all of it, and the list of checkpoints is not."""
    assert newest_whole(tmp_path) is None
    (tmp_path / f"ckpt-1{DATA}").write_bytes(b"...")
    for kind in ("index_cut_off", "data_gone"):
        assert newest_whole(tmp_path) is None
        model.write(str(tmp_path / "ckpt-10"))
        assert newest_whole(tmp_path) == str(tmp_path / "ckpt-10")
        damage(tmp_path, "ckpt-10", kind)
        assert newest_whole(tmp_path) is None


def test_none_is_whole(folder):
    for name in ("ckpt-5", "ckpt-10", "ckpt-100"):
        damage(folder, name, "data_bit_flipped")
    message = r"all checkpoints are damaged \(ckpt-100, ckpt-10, ckpt-5\).*--overwrite"
    with pytest.raises(InputError, match=message):
        newest_whole(folder)
    (folder / "checkpoint").rename(folder / "list")  # Several without their list are no first save.
    with pytest.raises(InputError, match=message):
        newest_whole(folder)
    (folder / "list").rename(folder / "checkpoint")
    for file in folder.glob("ckpt-*"):
        file.unlink()
    with pytest.raises(InputError, match="only their list is left"):
        newest_whole(folder)


def test_damage_in_the_optimiser_leaves_the_weights_readable(tmp_path, model):
    path = model.write(str(tmp_path / "ckpt-1"))
    # A thousand numbers of the encoder, then those of the optimiser: 4 bytes each.
    content = (tmp_path / f"ckpt-1{DATA}").read_bytes()
    (tmp_path / f"ckpt-1{DATA}").write_bytes(content[:6000] + b"!!!!" + content[6004:])
    assert "Checksum" in find_damage(path)
    assert find_damage(path, weights_only=True) is None


def test_tensorflow_goes_on_from_the_one_that_is_made_the_newest(folder, model):
    (folder / "ckpt-100.index").write_bytes(b"")
    make_newest(newest_whole(folder))
    assert str(folder) not in (folder / "checkpoint").read_text()  # A run can be moved.
    manager = tf.train.CheckpointManager(model, str(folder), max_to_keep=2)
    assert manager.latest_checkpoint == str(folder / "ckpt-10")
    manager.restore_or_initialize()
    assert model.encoder[0] == 10.0
    # The damaged one is written again when its step comes.
    manager.save(checkpoint_number=100)
    assert newest_whole(folder) == str(folder / "ckpt-100")
    assert not (folder / "ckpt-5.index").exists()
    # The list stays, or is made again if it is damaged.
    before = (folder / "checkpoint").read_bytes()
    make_newest(newest_whole(folder))
    assert (folder / "checkpoint").read_bytes() == before
    (folder / "checkpoint").write_text("model_checkpoint_pa")
    make_newest(newest_whole(folder))
    assert tf.train.latest_checkpoint(folder) == str(folder / "ckpt-100")


def test_what_a_broken_off_save_leaves_is_removed(folder):
    before = {path.name for path in folder.iterdir()}
    (folder / "ckpt-101_temp").mkdir()
    (folder / "ckpt-101_temp" / "part-00000-of-00001.data").write_bytes(b"...")
    (folder / "ckpt-101.index.tempstate123").write_bytes(b"...")
    (folder / "checkpoint.tmp123").write_bytes(b"...")
    remove_unfinished(folder)
    assert {path.name for path in folder.iterdir()} == before


# The best one.


def test_the_best_one_takes_the_place_of_the_one_before(tmp_path, model):
    assert read_best(tmp_path) is None
    for step, accuracy in ((10, 0.25), (100, 0.5)):
        model.encoder.assign(tf.fill([1000], float(step)))
        saved = save_best(model, tmp_path, step=step, accuracy=accuracy)
        model.write(str(tmp_path / "best" / "ckpt-20"))  # Killed before the record is written.
        path = str(tmp_path / f"best/ckpt-{step}")
        assert read_best(tmp_path) == saved == (path, accuracy, "retrieval")
        assert saved.step == step and find_damage(saved.path) is None
    save_best(model, tmp_path, step=100, accuracy=0.5)
    names = {path.name for path in (tmp_path / "best").iterdir()}
    assert names == {"best.json", "ckpt-100.index", f"ckpt-100{DATA}"}
    assert tf.train.load_variable(saved.path, "encoder/.ATTRIBUTES/VARIABLE_VALUE")[0] == 100.0
    # A damaged record is an error.
    record = tmp_path / "best" / "best.json"
    assert json.loads(record.read_text()) == {"step": 100, "accuracy": 0.5}
    for content in ("{", "[]", '{"step": 10}', '{"step": "x", "accuracy": 1}'):
        record.write_text(content)
        with pytest.raises(InputError, match=r"best\.json: the record of the best .* damaged"):
            read_best(tmp_path)
