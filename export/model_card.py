"""The model card: README.md of a model dir."""

from __future__ import annotations

from typing import Any

from labse_tf.languages import LANGUAGES

_CARD = """# A sentence encoder for {count} languages

Made with labse_tf {version} after the LaBSE paper (arXiv 2007.01852): a dual encoder trained with
additive margin softmax, so that translations lie close together.

| | |
|---|---|
| Encoder | {num_layers} layers, {hidden_size} wide, {num_attention_heads} heads |
| Vocabulary | {tokens} cased WordPieces (sha256 `{sha256:.12}`) |
| Training | {steps} steps with {batch_size} pairs each, margin {margin}, scale {scale} |
| Longest text | {sequence_length} tokens by default, {max_positions} at most |
| Languages | {languages} |

## How to use it

```python
import tensorflow as tf, tensorflow_hub as hub, tensorflow_text

preprocessor = hub.KerasLayer("preprocessor")
encoder = hub.KerasLayer("encoder")
vectors = tf.math.l2_normalize(encoder(preprocessor(tf.constant(["Hello", "Hallo"])))["default"], 1)
```

`default` is not normalised. With labse_tf: `labse_tf.load("MODEL_DIR").encode(["Hello", "Hallo"])`.

## Limits

A word that the vocabulary cannot spell, or that is longer than {max_bytes_per_word} bytes, is one
[UNK]. The data that it was trained on, and its licence, are for whoever publishes it to state.
"""


def model_card(facts: dict[str, Any]) -> str:
    """Returns the Markdown text for the facts of model.json."""
    languages = facts["languages"] or []
    return _CARD.format(
        count=len(languages),
        version=facts["versions"]["labse_tf"],
        languages=", ".join(f"{LANGUAGES[code].name} ({code})" for code in languages),
        sequence_length=facts["sequence_length"],
        max_bytes_per_word=facts["max_bytes_per_word"],
        **facts["encoder"],
        **facts["vocabulary"],
        **{name: facts["training"][name] for name in ("steps", "batch_size", "margin", "scale")},
    )
