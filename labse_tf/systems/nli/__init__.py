"""Fine-tuning on natural language inference, as in section 4.3 of CMLM's paper."""

from labse_tf.registry import Command

COMMANDS = {
    ("train-nli",): Command(
        "labse_tf.systems.nli.command", "fine-tune an encoder on natural language inference"
    )
}
SECTIONS = {"nli": "labse_tf.systems.nli.config"}
