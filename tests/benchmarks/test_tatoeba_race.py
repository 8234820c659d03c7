"""What docs/results.md says of the race's size, from the stages that it goes through."""

from __future__ import annotations

from repository import ROOT

from benchmarks.training import tatoeba_race
from labse_tf.config.files import load_config


def pairs_seen(config_path, *overrides):
    train = load_config(config_path, overrides).train
    return train.steps * train.batch_size


def test_the_docs_say_how_many_pairs_the_race_and_the_paper_take():
    race = sum(pairs_seen(tatoeba_race._CONFIG, *changes) for changes in tatoeba_race._STAGES)
    paper = pairs_seen(ROOT / "configs/labse_base.yaml")
    said = " ".join((ROOT / "docs/results.md").read_text("utf-8").split())
    assert f"was trained on {race / 1e6:.2f} million pairs" in said
    assert f"dual encoder was on {paper / 1e6:.0f} million" in said
    assert f"{paper / race:.0f} times as many" in said
