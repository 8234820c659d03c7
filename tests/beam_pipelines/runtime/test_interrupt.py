"""Ctrl-C inside a Beam job is an interruption, not an unexpected error."""

import apache_beam as beam
import pytest

from beam_pipelines.runtime.engine import Engine, run_pipeline


def _press_ctrl_c(_):
    raise KeyboardInterrupt


class Interrupted(beam.PTransform):
    def expand(self, begin):
        return begin | beam.Create([1]) | beam.Map(_press_ctrl_c)


def test_ctrl_c_inside_a_dofn_is_a_keyboard_interrupt():
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(Interrupted(), [], Engine([]))
