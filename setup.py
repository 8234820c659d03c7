"""Installs labse_tf and the `labse` command; versions that run together: requirements.txt."""

from setuptools import setup

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
DEV = ["ruff", "pytest", "hypothesis", "import-linter"]

setup(
    name="labse-tf",
    version="0.1.0",
    description="LaBSE in TensorFlow: from raw multilingual text to TF-Hub models",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=[
        "vocab",
        "beam_pipelines",
        "beam_pipelines.filters",
        "export",
        "labse_tf",
        "labse_tf.cli",
        "labse_tf.contrastive",
        "labse_tf.corpora",
        "labse_tf.data",
        "labse_tf.demo",
        "labse_tf.evaluation",
        "labse_tf.model",
        "labse_tf.training",
    ],
    package_data={"labse_tf.demo": ["*.html.j2", "*.yaml"]},
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
        "zstandard",
        "pyarrow",
        "tqdm",
        "jinja2",
        "matplotlib",
        "scikit-learn",
        "threadpoolctl",
        "Babel",
    ],
    extras_require={"demo": DEMO, "dev": [*DEMO, *DEV], "benchmarks": DEMO},
    entry_points={"console_scripts": ["labse = labse_tf.cli.main:entry_point"]},
)
