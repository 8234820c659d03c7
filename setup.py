"""What pyproject.toml cannot say: the presets of configs/ travel inside the package."""

from setuptools import find_packages, setup

ROOMS = ("vocab", "beam_pipelines", "export", "labse_tf")
PRESETS = "labse_tf.presets"

setup(
    packages=[*find_packages(include=[f"{room}*" for room in ROOMS]), PRESETS],
    package_dir={PRESETS: "configs"},
    package_data={
        PRESETS: ["*.yaml"],
        "export": ["*.md.j2"],
        "labse_tf": ["py.typed"],
        "labse_tf.demo": ["*.html.j2"],
        "vocab": ["py.typed"],
    },
)
