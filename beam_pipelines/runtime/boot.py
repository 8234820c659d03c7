"""Starts Beam workers without a container: on a machine of a cluster, or for a job on this machine.

An engine that runs workers as processes (Beam's environment PROCESS) calls `labse-beam-worker` with
the addresses of its services. Beam's own containers have a program for this, which needs the paths
of its image. Here the packages are those of the environment that the command is installed in.

The direct runner starts `python -m beam_pipelines.runtime.boot PARENT'S PROCESS ID`, since Beam's
own module writes much to stderr: errors reach the caller as exceptions.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the worker of a cluster's machine until the engine ends it."""
    told = "Starts a Beam worker; called by an engine such as Flink. See docs/cluster.md."
    parser = argparse.ArgumentParser(prog="labse-beam-worker", description=told)
    parser.add_argument("--id", required=True, help="the worker's name")
    parser.add_argument("--provision_endpoint", required=True, help="HOST:PORT of the engine")
    # Engines also pass the addresses that the provision service tells.
    args = parser.parse_known_args(argv)[0]
    # Beam reads it while it is imported.
    os.environ["WORKER_ID"] = args.id
    from apache_beam.runners.worker import sdk_worker_main

    os.environ.update(_provision(args.provision_endpoint))
    sdk_worker_main.main(())


def _provision(endpoint: str) -> dict[str, str]:
    """Returns the environment variables in which Beam's worker expects the engine's answers."""
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
    from apache_beam.runners.worker.worker_id_interceptor import WorkerIdInterceptor
    from google.protobuf import json_format, text_format

    with grpc.insecure_channel(endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(
            grpc.intercept_channel(channel, WorkerIdInterceptor())
        )
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = service.GetProvisionInfo(request, wait_for_ready=True, timeout=60).info

    endpoints = {"LOGGING": info.logging_endpoint, "CONTROL": info.control_endpoint}
    if info.HasField("status_endpoint"):
        endpoints["STATUS"] = info.status_endpoint
    return {
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
        **{
            f"{name}_API_SERVICE_DESCRIPTOR": text_format.MessageToString(endpoint)
            for name, endpoint in endpoints.items()
        },
    }


def run_quietly(parent: int) -> None:
    """Runs a worker of the direct runner in the process `parent`, and ends with it."""
    threading.Thread(target=end_with, args=[parent], daemon=True).start()
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    from apache_beam.runners.worker import sdk_worker_main

    # An error that ends the worker itself leaves this block as an exception, so it is still shown.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        sdk_worker_main.main(sys.argv)


def end_with(parent: int) -> None:
    """Ends this process when `parent` has ended; Beam's worker would do its work to the end."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    main() if sys.argv[1].startswith("-") else run_quietly(int(sys.argv[1]))
