"""Hard negatives: targets close in meaning to a source that do not translate it.

LaBSE, appendix B; Guo et al. 2018, "Effective Parallel Corpus Mining using Bilingual Sentence
Embeddings", section 3: a weaker dual encoder, a deep averaging network, finds them.
"""

from labse_tf.registry import Command

COMMANDS = {
    ("mine-negatives",): Command(
        "labse_tf.systems.hard_negatives.command",
        "mine hard negatives with a weaker dual encoder",
    )
}
SECTIONS = {"negatives": "labse_tf.systems.hard_negatives.config"}
