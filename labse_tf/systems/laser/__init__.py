"""LASER: an encoder trained by translation (Artetxe and Schwenk 2019, arXiv 1812.10464)."""

from labse_tf.registry import Command

COMMANDS = {
    ("train-laser",): Command(
        "labse_tf.systems.laser.train_command", "train an encoder by translation, as LASER"
    ),
    ("import-laser",): Command(
        "labse_tf.systems.laser.import_command", "import a published LASER as a model dir"
    ),
    ("translate",): Command(
        "labse_tf.systems.laser.translate_command",
        "translate sentences with a run that was trained to",
    ),
}
NETWORKS = {"bilstm": "labse_tf.systems.laser.bilstm_encoder:BiLstmEncoder"}
PREPROCESSORS = {"laser-2018": "labse_tf.systems.laser.tokenizer_2018:open_preprocessor"}
SECTIONS = {"laser": "labse_tf.systems.laser.config"}
DESCRIPTIONS = {"translation": "labse_tf.systems.laser.facts:describe"}
