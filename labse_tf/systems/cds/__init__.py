"""Contrastive data selection: how much tuning a translator on trusted pairs raises a pair's score.

Wang et al. 2018, "Denoising Neural Machine Translation Training with Trusted Data and Online Data
Selection", the filter that the LaBSE paper names (section 3.1).
"""

from labse_tf.registry import Command

COMMANDS = {
    ("corpus", "train-cds"): Command(
        "labse_tf.systems.cds.train_command",
        "train the translation models of contrastive data selection",
    ),
    ("corpus", "score-cds"): Command(
        "labse_tf.systems.cds.score_command",
        "score pairs for contrastive data selection",
        is_beam_job=True,
    ),
    ("corpus", "calibrate"): Command(
        "labse_tf.systems.cds.calibrate_command",
        "choose a score threshold from pairs labelled GOOD or BAD",
    ),
}
FILTERS = {"contrastive": "labse_tf.systems.cds.filter:Cds"}
TRANSLATORS = {
    "trusted": "labse_tf.systems.cds.translators:TransformerTranslator",
    "noisy": "labse_tf.systems.cds.translators:TransformerTranslator",
}
SECTIONS = {"cds": "labse_tf.systems.cds.config"}
