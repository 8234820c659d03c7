"""Which engine runs a job, and what follows from that: options, paths, and how data is shuffled."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions

from beam_pipelines.runtime import flink
from beam_pipelines.runtime.storage import configure, scheme_of
from labse_tf.errors import InputError

# Names under which Beam knows runners of this machine, in lower case and without their modules.
_LOCAL_RUNNERS = (
    "direct",
    "directrunner",
    "fnapirunner",
    "switchingdirectrunner",
    "bundlebaseddirectrunner",
    "prismrunner",
)


class SharingOptions(PipelineOptions):
    """Our own option beside Beam's."""

    @classmethod
    def _add_argparse_args(cls, parser):
        parser.add_argument(
            "--shared_filesystem",
            "--shared-filesystem",
            action="store_true",
            help="local paths are the same folders on all machines",
        )


class Engine:
    """The engine that a user's Beam options name; the direct runner if they name none.

    Attributes:
      arguments: the options, with the defaults for the engine.
      is_distributed: whether workers may be on other machines.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        """Raises InputError if the cluster that the options name does not answer."""
        configure(arguments)
        options = PipelineOptions(list(arguments))
        runner = options.view_as(StandardOptions).runner
        self._name = runner.rpartition(".")[2] if runner else "the direct runner"
        on_flink = self._name.lower() == "flinkrunner"
        self.is_distributed = not (
            runner is None
            or self._name.lower() in _LOCAL_RUNNERS
            or options.view_as(PortableOptions).environment_type == "LOOPBACK"
            # Beam starts a Flink of its own, and workers in this process.
            or (on_flink and not flink.is_cluster(options))
        )
        self.arguments = list(arguments)
        self._shares = options.view_as(SharingOptions).shared_filesystem
        if on_flink and self.is_distributed:
            self.arguments = flink.complete_options(arguments)

    def check_paths(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Refuses paths that workers on other machines cannot read.

        Raises:
          InputError: for a local path, unless the user said that the machines share it.
        """
        if not self.is_distributed or self._shares:
            return
        for path in map(os.fspath, paths):
            if path and scheme_of(path) is None:
                raise InputError(
                    f"is a path on this machine, which the workers of {self._name} cannot reach",
                    path=path,
                    remedy="use s3://, gs:// or hdfs://; or, if all machines have this folder at "
                    "this path, add --shared-filesystem after `--`",
                )

    def shuffle_folder(self, folder: str) -> str | None:
        """Returns where `shuffle` puts its files; None if this engine carries the data itself."""
        return None if self.is_distributed else folder
