"""Pages of the docs site that are made: the README as its start, the notebooks, the API.

Links to files of the repository outside docs/ become plain text, if there is such a file.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
# Of the API, what people import; a heading and its modules.
_API = {
    "Load and embed": ("labse_tf", "labse_tf.embedding.light", "labse_tf.embedding.embedder"),
    "Languages": ("labse_tf.languages",),
    "Vocabularies": ("vocab.wordpiece", "vocab.learner", "vocab.extension", "vocab.smoothing"),
    "Losses": ("labse_tf.losses",),
    "Evaluation": (
        *("labse_tf.evaluation.task", "labse_tf.evaluation.result", "labse_tf.evaluation.bitext"),
        "labse_tf.mteb",
    ),
    "Retrieval": ("labse_tf.retrieval.job", "labse_tf.retrieval.scoring"),
    "Configuration": ("labse_tf.config.sections", "labse_tf.config.files"),
    "Export": ("export.model_dir", "export.verification", "export.onnx"),
}


def on_files(files, config):
    readme = (ROOT / "README.md").read_text("utf-8")
    made = {"index.md": readme.replace("(docs/", "("), "api.md": _api()}
    for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        made[f"journeys/{path.stem}.md"], _ = MarkdownExporter().from_notebook_node(notebook)
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    source = Path("docs", page.file.src_uri)
    if page.file.src_uri == "index.md":
        source = Path("README.md")
    if source.parts[:2] == ("docs", "journeys"):
        source = Path("examples", "notebooks", source.name)

    def plain(found: re.Match) -> str:
        text, target, _ = found.groups()
        if files.get_file_from_path((Path(page.file.src_uri).parent / target).as_posix()):
            return found[0]
        place = (ROOT / source).parent / target
        if page.file.src_uri == "index.md" and not place.exists():
            place = ROOT / "docs" / target
        if not place.exists():
            raise PluginError(f"{source}: a link to {target}, which does not exist")
        inside = place.resolve().relative_to(ROOT)
        if inside.parts[0] == "docs" and place.suffix == ".md":
            return found[0]
        return text if text.startswith("`") else f"{text} (`{inside}`)"

    return _LINK.sub(plain, markdown)


def _api() -> str:
    parts = ["# Python reference\n"]
    for heading, modules in _API.items():
        parts.append(f"## {heading}\n")
        parts += [f"::: {module}\n    options: {{heading_level: 3}}\n" for module in modules]
    return "\n".join(parts)
