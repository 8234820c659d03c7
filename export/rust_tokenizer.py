"""`onnx/tokenizer.json`: the tokeniser of Hugging Face's `tokenizers`, in Rust, with the same ids.

For servers and languages that have neither TensorFlow nor this package. It splits as
`vocab.basic_tokenizer` describes, by the same classes of characters. One difference remains: a word
of more than `max_bytes_per_word` bytes is `[UNK]` for the preprocessor, and here one of more than
so many characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vocab.basic_tokenizer import ALONE, GAP, UNICODE_SPACE, UNLIKE_TF
from vocab.wordpiece import JOINER, UNKNOWN, divides_at_spaces

TOKENIZER_FILE = Path("onnx", "tokenizer.json")
_START, _END, _PADDING = "[CLS]", "[SEP]", "[PAD]"


def save_rust_tokenizer(
    tokens: Sequence[str], file: Path, *, max_bytes_per_word: int, length: int
) -> None:
    """Writes the file.

    Args:
      tokens: the vocabulary, WordPieces.
      file: its path.
      max_bytes_per_word: of the model.
      length: texts are cut to this many tokens, `[CLS]` and `[SEP]` included.
    """
    build(tokens, max_bytes_per_word=max_bytes_per_word, length=length).save(str(file))


def build(tokens: Sequence[str], *, max_bytes_per_word: int, length: int):
    """Returns a `tokenizers.Tokenizer`; arguments are those of `save_rust_tokenizer`."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(
        models.WordPiece(
            vocab=ids,
            unk_token=UNKNOWN,
            continuing_subword_prefix=JOINER,
            max_input_chars_per_word=max_bytes_per_word,
        )
    )
    if divides_at_spaces(tokens):
        tokenizer.normalizer = normalizers.Replace(Regex(UNICODE_SPACE), " ")
    # Oniguruma writes set differences as intersections.
    alone = rf"[{ALONE}&&[^{UNLIKE_TF}]]"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(f"[{GAP}]+"), behavior="removed"),
            pre_tokenizers.Split(Regex(alone), behavior="isolated"),
        ]
    )
    ends = [(token, ids[token]) for token in (_START, _END)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{_START} $A {_END}", special_tokens=ends
    )
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(pad_id=ids[_PADDING], pad_token=_PADDING)
    return tokenizer
