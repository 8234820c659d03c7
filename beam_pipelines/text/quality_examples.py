"""Training examples for a quality model: sentences of the main content of pages, and others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from beam_pipelines.reading.web import main_and_other_lines, read_pages
from beam_pipelines.records.records import UNDETERMINED
from beam_pipelines.text.sentences import split_sentences
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.tokenization.language_id import identify

# A few letters do not tell which part of a page they are from.
_MIN_CHARACTERS, _MAX_CHARACTERS = 10, 5000


class Example(NamedTuple):
    """A text of a page.

    Attributes:
      text: a sentence.
      is_main: whether it is part of the main content.
      site: the host of the page's address.
      page: the address.
      language: of the page, the paper's code or UNDETERMINED.
    """

    text: str
    is_main: bool
    site: str
    page: str
    language: str


def read_examples(file: CorpusFile) -> Iterator[Example]:
    """Yields the sentences of the pages of a WARC file.

    Raises:
      InputError: if the file is damaged, has no HTML pages, or has one that cannot be read.
    """
    with open(file.path, "rb") as stream:
        for page, html, charset in read_pages(stream, file):
            if isinstance(html, InputError):
                raise html
            yield from examples_of_page(page, html, charset)


def examples_of_page(page: str, html: bytes, charset: str | None) -> Iterator[Example]:
    """Yields the sentences of a page."""
    main, other = main_and_other_lines(html, charset)
    language = identify([" ".join(main or other)])[0][0] or UNDETERMINED
    site = urlsplit(page).netloc
    for lines, is_main in ((main, True), (other, False)):
        for line in lines:
            for text in split_sentences(line, language):
                if _MIN_CHARACTERS <= len(text) <= _MAX_CHARACTERS:
                    yield Example(text, is_main, site, page, language)


class Sample:
    """A bounded number of distinct texts of examples, each with its most frequent class.

    If there are too many, the hash of a text determines whether it is kept, so the sample is random
    and does not depend on the order of the pages.
    """

    def __init__(self, max_texts: int) -> None:
        self._max_texts = max_texts
        self._limit = 1 << 64
        # Text -> its first example, and how often it was elsewhere and in the main content.
        self._texts: dict[str, tuple[Example, list[int]]] = {}

    def add(self, example: Example) -> None:
        if _hash(example.text) >= self._limit:
            return
        _, counts = self._texts.setdefault(example.text, (example, [0, 0]))
        counts[example.is_main] += 1
        while len(self._texts) > self._max_texts:
            self._limit //= 2
            self._texts = {
                text: found for text, found in self._texts.items() if _hash(text) < self._limit
            }

    def examples(self) -> Sequence[Example]:
        """Returns an example of each text; one equally frequent in both classes is main content."""
        return [
            example._replace(is_main=main >= other)
            for example, (other, main) in self._texts.values()
        ]


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
