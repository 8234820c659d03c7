"""Every filter shows an example in its docstring, which is true."""

import doctest
import importlib
import inspect

import pytest

from beam_pipelines.filtering.choose_filters import find_filters
from beam_pipelines.records.records import Document, Pair, Sentence
from labse_tf.files.record_kinds import KINDS

FILTERS = sorted({found for kind in KINDS for found in find_filters(kind)}, key=inspect.getfile)
NAMES = {record.__name__: record for record in (Document, Pair, Sentence)}


@pytest.mark.parametrize("found", FILTERS, ids=lambda found: found.name)
def test_examples(found):
    module = importlib.import_module(found.__module__)
    assert ">>> " in found.__doc__
    result = doctest.testmod(module, extraglobs=NAMES)
    assert result.attempted > 0 and result.failed == 0
