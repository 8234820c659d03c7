"""Distillation: a smaller student learns a teacher's vectors."""

from labse_tf.registry import Command

COMMANDS = {
    ("distill",): Command("labse_tf.systems.distill.command", "train a smaller student model")
}
SECTIONS = {"distill": "labse_tf.systems.distill.config"}
DESCRIPTIONS = {"distillation": "labse_tf.systems.distill.facts:describe"}
