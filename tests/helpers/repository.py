"""Where the repository lies, for tests of any depth."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
DOCS = ROOT / "docs"
# Corpora that a clone may lack.
SHARED = ROOT.parent / "shared" / "data"
