#!/usr/bin/env bash
# Builds the wheel, checks what an index would, installs it in an empty environment without extras,
# and there runs the README's example, commands, and a type checker. `make wheel-test` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/python" -m build --outdir "$work/dist" . >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$bin/twine" check --strict "$work"/dist/*
"$bin/check-wheel-contents" "$work"/dist/*.whl

# A model for the example: random weights, of the shape that `labse train` makes.
text=$work/text
mkdir "$text"
printf 'A house by the river.\tEin Haus am Fluss.\nGood morning, all!\tGuten Morgen, alle!\n' >"$text/de.tsv"
"$bin/labse" vocab build "$text" --out "$work/vocab.txt" --vocab-size 200
"$bin/labse" train configs/tiny.yaml --run-dir "$work/run" --set "tokenizer.vocab_file=$work/vocab.txt" \
    --set "train.bitext=[$text]" --set train.steps=0
"$bin/labse" export "$work/run" --format onnx --out "$work/model"

python3.11 -m venv "$work/venv"
"$bin/uv" pip install --quiet --python "$work/venv/bin/python" "$work"/dist/*.whl
# The first Python example of the README, as it stands there.
awk '/^```python$/ {inside = 1; next} /^```$/ {if (inside) exit} inside' README.md >"$work/example.py"
cat "$work/example.py"
cd "$work"
venv/bin/python example.py
venv/bin/python -c 'import sys, labse_tf; assert "numpy" not in sys.modules and "tensorflow" not in sys.modules'
cut -f 1 text/de.tsv >en.txt
cut -f 2 text/de.tsv >de.txt
venv/bin/labse embed model/onnx/model.onnx de.txt --out vectors.npy
venv/bin/labse score model/onnx/model.onnx text/de.tsv --out scores.tsv
venv/bin/labse mine model/onnx/model.onnx de.txt en.txt --out mined.tsv
if venv/bin/labse train finetune.yaml --run-dir no 2>message; then exit 1; fi
grep "pip install 'labse-tf\[" message
# The public interface, as strict as it goes, against the installed package.
"$bin/mypy" --strict --python-executable venv/bin/python example.py
du -sh venv/lib/python3.11/site-packages dist/*.whl
