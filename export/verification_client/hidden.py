"""Packages that users of a model dir do not have, however they are installed here."""

HIDDEN = ("labse_tf", "export", "vocab", "beam_pipelines", "official")
