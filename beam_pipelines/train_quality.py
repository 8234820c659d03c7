"""Trains a text quality classifier on web pages, as LaBSE's training data was filtered with one.

Sentences of the main content of pages are the good class, other text on the pages the bad one.
"""

from __future__ import annotations

import collections
import hashlib
import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from beam_pipelines import quality_model
from beam_pipelines.quality_model import BITS, QualityModel, hash_ngrams
from beam_pipelines.reading.web import main_and_other_lines, read_pages
from beam_pipelines.records import UNDETERMINED
from beam_pipelines.sentences import split_sentences
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import MONOLINGUAL, WARC, CorpusFile, find_corpus_files
from labse_tf.files.outputs import whole_dir
from labse_tf.progress import Progress
from labse_tf.tokenization.language_id import identify

_log = logging.getLogger("labse")

_FOLDS = 5
# With fewer sentences in either class, a language's AUC is too noisy to report.
_MIN_FOR_A_FIGURE = 50
ALL = "all"
# A few letters do not tell which part of a page they are from.
_MIN_CHARACTERS, _MAX_CHARACTERS = 10, 5000


class Example(NamedTuple):
    """A sentence of a page, and whether it is part of the main content."""

    text: str
    is_main: bool
    site: str  # The host of the page's address.
    page: str  # The address.
    language: str  # The page's: the paper's code or UNDETERMINED.


def run(
    inputs: Sequence[str], out: str, *, max_texts: int = 200_000, overwrite: bool = False
) -> dict:
    """Writes a model into the folder `out`; returns its facts, see `measure`.

    `inputs` are WARC files with HTML pages, folders or globs of them; `max_texts` is the maximum
    number of distinct sentences to train on.

    Raises:
      InputError: for inputs that are missing or damaged, an `out` that exists, or too few pages
        with sentences of either class.
    """
    if max_texts < 1:
        raise InputError(f"--max-texts is {max_texts}", remedy="give 1 or more")
    with whole_dir(out, overwrite=overwrite) as folder:
        examples = _read(inputs, max_texts)
        _log.info("training on %d distinct sentences", len(examples))
        facts = measure(examples)
        quality_model.save(train(examples), folder, facts)
    return facts


def _read(inputs: Sequence[str], max_texts: int) -> Sequence[Example]:
    files = find_corpus_files(inputs, kind=MONOLINGUAL, formats=(WARC,))
    examples = draw_sample(itertools.chain.from_iterable(map(read_examples, files)), max_texts)
    pages = {is_main: {e.page for e in examples if e.is_main == is_main} for is_main in (0, 1)}
    if min(map(len, pages.values())) < _FOLDS:
        problem = f"main content on {len(pages[1])} pages and other text on {len(pages[0])}"
        remedy = f"give WARC files with at least {_FOLDS} pages of each"
        raise InputError(problem, remedy=remedy)
    return examples


def read_examples(file: CorpusFile) -> Iterator[Example]:
    """Yields the sentences of a WARC file's HTML pages, of which it must have at least one."""
    with open(file.path, "rb") as stream:
        for page, html, charset in read_pages(stream, file):
            if isinstance(html, InputError):
                raise html
            main, other = main_and_other_lines(html, charset)
            language = identify([" ".join(main or other)])[0][0] or UNDETERMINED
            site = urlsplit(page).netloc
            for lines, is_main in ((main, True), (other, False)):
                for text in (one for line in lines for one in split_sentences(line, language)):
                    if _MIN_CHARACTERS <= len(text) <= _MAX_CHARACTERS:
                        yield Example(text, is_main, site, page, language)


def draw_sample(examples: Iterable[Example], max_texts: int) -> list[Example]:
    """Returns at most `max_texts` distinct texts of examples, each with its most frequent class.

    A text that is as frequent in both classes is main content. If there are too many texts, their
    hashes determine which are kept, so the sample is random and does not depend on the order.
    """
    limit = 1 << 64
    # Text -> its first example, and how often it was elsewhere and in the main content.
    texts: dict[str, tuple[Example, list[int]]] = {}
    with Progress("reading pages", unit="text") as progress:
        for example in examples:
            progress.update()
            if _hash(example.text) < limit:
                _, counts = texts.setdefault(example.text, (example, [0, 0]))
                counts[example.is_main] += 1
            while len(texts) > max_texts:
                limit //= 2
                texts = {text: found for text, found in texts.items() if _hash(text) < limit}
    return [example._replace(is_main=main >= other) for example, (other, main) in texts.values()]


def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def train(examples: Sequence[Example]) -> QualityModel:
    """Returns a model trained on these examples; the same examples give the same model."""
    options = {"loss": "log_loss", "alpha": 1e-5, "max_iter": 5, "tol": None, "average": True}
    classifier = SGDClassifier(**options, class_weight="balanced", random_state=0)
    classifier.fit(_features(examples), [example.is_main for example in examples])
    return QualityModel(classifier.coef_[0].astype(np.float32), float(classifier.intercept_[0]))


def measure(examples: Sequence[Example]) -> dict:
    """Returns how well models separate the classes on text that they were not trained on.

    Five models are trained; each scores the sites that it was not trained on, or the pages if there
    are fewer than five sites. Returns `{"held_out": "site" or "page", "sites": n, "pages": n,
    "languages": {language: {"main": n, "other": n, "auc": a}}}`, with the area under the ROC curve,
    None if a class has fewer than 50 sentences. The language `all` covers all.
    """
    sites, pages = {e.site for e in examples}, {e.page for e in examples}
    unit = "site" if len(sites) >= _FOLDS else "page"
    groups = [getattr(example, unit) for example in examples]
    scores = np.empty(len(examples))
    for seen, unseen in GroupKFold(_FOLDS).split(examples, groups=groups):
        model = train([examples[place] for place in seen])
        scores[unseen] = model.score([examples[place].text for place in unseen])
    places: dict[str, list[int]] = collections.defaultdict(list)
    for place, example in enumerate(examples):
        places[example.language].append(place)
        places[ALL].append(place)
    is_main, rows = np.array([example.is_main for example in examples]), {}
    for name, found in sorted(places.items()):
        main = int(is_main[found].sum())
        other = len(found) - main
        enough = min(main, other) >= _MIN_FOR_A_FIGURE
        auc = round(float(roc_auc_score(is_main[found], scores[found])), 4) if enough else None
        rows[name] = {"main": main, "other": other, "auc": auc}
    return {"held_out": unit, "sites": len(sites), "pages": len(pages), "languages": rows}


def _features(examples: Sequence[Example]) -> csr_matrix:
    hashes, places = hash_ngrams([example.text for example in examples])
    sizes = np.bincount(places, minlength=len(examples))
    values = (1 / np.sqrt(sizes[places])).astype(np.float32)
    return csr_matrix((values, (places, hashes)), shape=(len(examples), 1 << BITS))


def format_table(facts: dict) -> str:
    """Returns the facts as lines of text, without languages that have no AUC."""
    lines = [
        f"{facts['pages']} pages of {facts['sites']} sites; held out by {facts['held_out']}",
        f"{'language':10}{'main':>10}{'other':>10}{'AUC':>8}",
    ]
    for name, row in facts["languages"].items():
        if row["auc"] is not None:
            lines.append(f"{name:10}{row['main']:10}{row['other']:10}{row['auc']:8.3f}")
    return "\n".join(lines)
