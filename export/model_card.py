"""The model card: README.md of a model dir, headed by what the Hugging Face Hub reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import jinja2
import yaml

from labse_tf.evaluation.task import find_task, primary_figure
from labse_tf.languages import language_of

_CARD = """\
# A sentence encoder{% if languages %} for {{ languages | length }} languages{% endif %}

Made with labse_tf {{ versions.labse_tf }} after the LaBSE paper (arXiv 2007.01852), where
translations lie close together.

| | |
|---|---|
| Encoder | \
{% if encoder.get('network') == 'bilstm' %}bidirectional LSTM, {{ encoder.num_layers }} \
layer{{ 's' if encoder.num_layers > 1 }}, {{ encoder.hidden_size }} wide, the maximum over tokens\
{% elif encoder.num_layers %}{{ encoder.num_layers }} layers, {{ encoder.hidden_size }} wide, \
{{ encoder.num_attention_heads }} heads\
{% else %}the average of token vectors, {{ encoder.hidden_size }} wide{% endif %}, \
{{ '{:,}'.format(parameters) }} weights |
| Vocabulary | {{ '{:,}'.format(vocabulary.tokens) }} \
{{ tokenizer | name_of_pieces }} \
(sha256 `{{ vocabulary.sha256[:12] }}`)\
{% if kept_of %}, a subset of {{ '{:,}'.format(kept_of.tokens) }}{% endif %} |
| Longest text | {{ sequence_length }} tokens by default, {{ encoder.max_positions }} at most |
| Licence | {{ licence or 'not stated: ask whoever published it' }} |

## Languages

{{ languages and languages | map('language_name') | join(', ') or 'Not stated.' }}

## Training
{% if training %}
{% set kind = training.get('kind', 'dual encoder') %}\
{{ '{:,}'.format(training.steps) }} steps of \
{% if kind == 'distillation' %}\
{{ '{:,}'.format(training.batch_size) }} texts, whose vectors it learned from the model \
`{{ training.teacher }}`, \
{% elif kind == 'pre-training' %}\
{{ '{:,}'.format(training.batch_size) }} sequences of MLM and TLM; its vectors were not trained \
to recognize translations, \
{% elif kind == 'translation' %}\
{{ '{:,}'.format(training.batch_size) }} tokens, translated from their vectors into \
{{ training.targets | map('language_name') | join(' or ') }} as in LASER (arXiv 1812.10464), \
{% else %}\
{{ '{:,}'.format(training.batch_size) }} pairs, additive margin softmax with margin \
{{ training.margin }} and scale {{ training.scale }}, \
{% endif %}\
seed {{ training.seed }}. \
Data: {{ (training.get('monolingual', []) + training.get('bitext', [])) | join(', ') \
or 'not stated' }}.
{% if training.get('beside') %}
This is the first of {{ training.beside | length + 1 }} such runs, whose vectors stand side by \
side in the model's; `model.json` describes the others.
{% endif %}{% if training.get('matryoshka') %}
Its vectors have {{ training.matryoshka[0] }} dimensions and can be cut (Matryoshka, \
arXiv 2205.13147): their first {{ training.matryoshka[1:] | join(' or ') }} columns, scaled to \
unit length again, are vectors too.
{% endif %}{% if training.get('dev_accuracy_by_language') %}
Retrieval accuracy on the dev pairs of the training, mean of both directions, %:

| language | accuracy |
|---|---|
{% for language, accuracy in training.dev_accuracy_by_language | dictsort -%}
| {{ language | language_name }} | {{ '{:.1f}'.format(100 * accuracy) }} |
{% endfor %}{% else %}
No results by language: it was trained without dev pairs.
{% endif %}{% else %}
Not stated: its weights were imported.
{% endif %}
## How to use it

Paths are relative to this folder.
{% if tokenizer == 'laser-2018' %}
With labse_tf: `labse_tf.load(".").encode(["Hello", "Hallo"])`. The SavedModel `encoder` takes the \
ids of tokens, whose number is their line in `encoder/assets/vocab.txt`, from 0, and gives \
`default`, which is not normalised.
{% elif 'hub' in formats %}
```python
import tensorflow as tf, tensorflow_hub as hub, tensorflow_text  # TF_USE_LEGACY_KERAS=1

preprocessor = hub.KerasLayer("preprocessor")
encoder = hub.KerasLayer("encoder")
inputs = preprocessor(tf.constant(["Hello", "Hallo"]))
vectors = tf.math.l2_normalize(encoder(inputs)["default"], 1)
```

`default` is not normalised. With labse_tf: `labse_tf.load(".").encode(["Hello", "Hallo"])`.
{% if training and training.get('matryoshka') %}
Shorter vectors: `tf.math.l2_normalize(vectors[:, :{{ training.matryoshka[-1] }}], 1)`, or on the \
command line `--dim {{ training.matryoshka[-1] }}`.
{% endif %}{% endif %}{% if 'text' in formats %}
From strings to unit vectors in one step:

```python
import tensorflow as tf, tensorflow_text

vectors = tf.saved_model.load("text_encoder")(tf.constant(["Hello", "Hallo"]))
```
{% endif %}{% if 'hf' in formats %}
```python
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer(".").encode(["Hello", "Hallo"])
```
{% if encoder.num_layers and encoder.pooling == 'cls' %}
With transformers: use the `pooler_output` of `BertModel`, scaled to unit length, not the mean of
the tokens.
{% endif %}{% endif %}{% if 'lite' in formats or 'onnx' in formats %}
{% if 'hub' in formats and tokenizer != 'laser-2018' %}\
`inputs` of these is from above.{% else %}\
`inputs`: int32 `[batch, length]` each of `input_word_ids` (\
{{ 'as above' if tokenizer == 'laser-2018' else 'from a cased BERT tokeniser with `vocab.txt`' }}\
), `input_mask` and `input_type_ids`.{% endif %} \
`default` is not normalised.
{% endif %}{% if 'lite' in formats %}
```python
from ai_edge_litert.interpreter import Interpreter

encode = Interpreter("lite/encoder_int8.tflite").get_signature_runner()
vectors = encode(**inputs)["default"]
```
{% endif %}{% if 'onnx' in formats %}
```python
import numpy as np, onnxruntime

session = onnxruntime.InferenceSession("onnx/model_int8.onnx")  # Or model.onnx, in float32.
names = {
    "input_ids": "input_word_ids",
    "attention_mask": "input_mask",
    "token_type_ids": "input_type_ids",
}
feed = {theirs: np.asarray(inputs[ours], np.int64) for theirs, ours in names.items()}
vectors = session.run(["default"], feed)[0]
```
{% endif %}
## Limits

{% if tokenizer == 'laser' %}\
Punctuation is normalised by the rules of Moses, and text is lower-cased, as by LASER.
{% elif tokenizer == 'laser-2018' %}\
Text is split into words by the rules of its language, lower-cased, and in Greek romanised, as by \
LASER. This needs labse_tf and, for some languages, further packages.
{% elif tokenizer == 'bpe' %}\
A character that the vocabulary lacks is [UNK]. Text is neither lower-cased nor normalised.
{% else %}\
A word that the vocabulary cannot spell, or that is longer than {{ max_bytes_per_word }} bytes, is
one [UNK]. Text is neither lower-cased nor normalised.
{% endif %}"""


# Licences by the Hub's names; any other is "other", with its own name.
_LICENCES = frozenset(
    ("apache-2.0", "mit", "bsd-3-clause", "gpl-3.0", "mpl-2.0", "cc0-1.0")
    + ("cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "openrail")
)
_TAGS = ("feature-extraction", "sentence-similarity", "bitext-mining", "LaBSE")
# The types that the Hub and MTEB have for our tasks.
_TYPES = {
    **dict.fromkeys(("tatoeba", "bucc", "un", "retrieval", "xsim"), "BitextMining"),
    "sts": "STS",
    **dict.fromkeys(("classify", "xnli", "senteval"), "Classification"),
    "paraphrase": "PairClassification",
}
_PIECES = {
    "wordpiece": "cased WordPieces",
    "bpe": "cased byte-pair encodings",
    "laser": "SentencePieces of LASER",
    "laser-2018": "byte-pair encodings of LASER",
}


def model_card(
    facts: dict[str, Any], *, parameters: int, results: Iterable[dict[str, Any]] = ()
) -> str:
    """Returns the Markdown text, after YAML between two lines of `---`.

    Args:
      facts: the contents of model.json.
      parameters: the number of the encoder's weights.
      results: records of `labse eval`, for the Hub.
    """
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters["name_of_pieces"] = _PIECES.get
    environment.filters["language_name"] = lambda code: f"{language_of(code).name} ({code})"
    card = environment.from_string(_CARD).render(
        **{"kept_of": None, "tokenizer": "wordpiece", **facts}, parameters=parameters
    )
    head = yaml.safe_dump(_hub_metadata(facts, results), sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n{card}"


def _hub_metadata(facts: dict[str, Any], results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    library = "sentence-transformers" if "hf" in facts["formats"] else "labse_tf"
    found: dict[str, Any] = {}
    if facts["languages"]:
        found["language"] = sorted(facts["languages"])
    if licence := facts["licence"]:
        known = licence.strip().lower()
        other = {"license": "other", "license_name": licence}
        found |= {"license": known} if known in _LICENCES else other
    found |= {"library_name": library, "pipeline_tag": "sentence-similarity"}
    found["tags"] = [library, *_TAGS]
    if entries := [_describe_result(record) for record in results]:
        found["model-index"] = [{"name": "labse_tf", "results": entries}]
    return found


def _describe_result(record: dict[str, Any]) -> dict[str, Any]:
    task = record["task"]
    value = 100 * primary_figure(find_task(task), record)
    data = os.path.basename(os.path.normpath(record["data"]["path"]))
    return {
        "task": {"type": _TYPES.get(task, "sentence-similarity"), "name": task},
        "dataset": {"type": data, "name": data},
        "metrics": [{"type": record["primary_metric"], "value": round(value, 2)}],
    }
