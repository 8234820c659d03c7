"""What users of a model dir do not have, whichever way it is installed here."""

HIDDEN = ("labse_tf", "export", "vocab", "beam_pipelines", "official")
