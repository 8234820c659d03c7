"""The installed packages that the demo corpus is taken from: folders, versions, licences."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import NamedTuple

from labse_tf.errors import InputError

MESSAGES = "messages"
NAMES = "names"


class Source(NamedTuple):
    """A package that contains translations.

    Attributes:
      distribution: its name on PyPI.
      module: the Python package whose folder holds the files.
      kind: MESSAGES or NAMES.
      pattern: glob of the catalogues' file names; "" for a source without gettext catalogues.
      data_licence: licence of the data, if the package's metadata gives another one for its code.
    """

    distribution: str
    module: str
    kind: str
    pattern: str
    data_licence: str = ""


# The compiled .mo files are smaller and leave out fuzzy entries. Plone is read from .po files, as
# only these hold its English text: its message keys are identifiers such as `label_save`. All of
# pycountry is read except ISO 3166-2, whose English names of provinces are mostly not English.
SOURCES = (
    Source("Django", "django", MESSAGES, "*.mo"),
    Source("django-cms", "cms", MESSAGES, "*.mo"),
    Source("django-filter", "django_filters", MESSAGES, "*.mo"),
    Source("django-formtools", "formtools", MESSAGES, "*.mo"),
    Source("django-taggit", "taggit", MESSAGES, "*.mo"),
    Source("django-treebeard", "treebeard", MESSAGES, "*.mo"),
    Source("djangorestframework", "rest_framework", MESSAGES, "*.mo"),
    Source("plone.app.locales", "plone.app.locales", MESSAGES, "*.po"),
    Source("Sphinx", "sphinx", MESSAGES, "*.mo"),
    Source("wagtail", "wagtail", MESSAGES, "*.mo"),
    Source("pycountry", "pycountry", NAMES, "iso*[!2].mo"),
    Source("babel", "babel", NAMES, "", data_licence="Unicode-3.0"),
)


def find_folder(source: Source) -> Path:
    """Returns the folder of an installed source, without importing it.

    Raises:
      InputError: if the package is not installed.
    """
    try:
        spec = importlib.util.find_spec(source.module)
    except ModuleNotFoundError:  # a parent of a dotted name
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"the package {source.distribution} is not installed",
            remedy="install the demo corpus's packages: pip install 'labse-tf[demo]'",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def find_version(source: Source) -> str:
    """Returns the version of an installed source."""
    return importlib.metadata.version(source.distribution)


def find_licence(source: Source) -> str:
    """Returns the licence of an installed source, as stated in its metadata, and of its data."""
    facts = importlib.metadata.metadata(source.distribution)
    stated = facts.get("License-Expression") or facts.get("License")
    if not stated:
        classifiers = facts.get_all("Classifier") or []
        named = [name for name in classifiers if name.startswith("License ::")]
        stated = ", ".join(name.split(" :: ")[-1] for name in named) or "not stated"
    stated = stated.splitlines()[0]
    return f"{stated} (data: {source.data_licence})" if source.data_licence else stated
