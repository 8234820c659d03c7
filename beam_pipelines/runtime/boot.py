"""`labse-beam-worker`: starts a Beam worker on a machine of a cluster, without a container.

An engine that runs workers as processes (Beam's environment PROCESS) calls this command with the
addresses of its services. Beam's own containers have a program for this, which wants the paths of
its image. Here the packages are those of the environment that the command is installed in.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the worker until the engine ends it."""
    args = _parse(argv)
    # Beam reads it while it is imported.
    os.environ["WORKER_ID"] = args.id
    from apache_beam.runners.worker import sdk_worker_main

    os.environ.update(_provision(args.provision_endpoint))
    sdk_worker_main.main(())


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="labse-beam-worker",
        description="Starts a Beam worker; called by an engine such as Flink. See docs/cluster.md.",
    )
    parser.add_argument("--id", required=True, help="the worker's name")
    parser.add_argument(
        "--provision_endpoint", required=True, metavar="HOST:PORT", help="where the engine answers"
    )
    # Engines also pass the addresses that the provision service tells.
    return parser.parse_known_args(argv)[0]


def _provision(endpoint: str) -> dict[str, str]:
    """Returns the environment variables in which Beam's worker expects the engine's answers."""
    import grpc
    from apache_beam.portability.api import (
        beam_provision_api_pb2,
        beam_provision_api_pb2_grpc,
        endpoints_pb2,
    )
    from apache_beam.runners.worker.worker_id_interceptor import WorkerIdInterceptor
    from google.protobuf import json_format, text_format

    with grpc.insecure_channel(endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(
            grpc.intercept_channel(channel, WorkerIdInterceptor())
        )
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = service.GetProvisionInfo(request, wait_for_ready=True, timeout=60).info

    def text(descriptor: endpoints_pb2.ApiServiceDescriptor) -> str:
        return text_format.MessageToString(descriptor)

    variables = {
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "LOGGING_API_SERVICE_DESCRIPTOR": text(info.logging_endpoint),
        "CONTROL_API_SERVICE_DESCRIPTOR": text(info.control_endpoint),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    if info.HasField("status_endpoint"):
        variables["STATUS_API_SERVICE_DESCRIPTOR"] = text(info.status_endpoint)
    return variables


if __name__ == "__main__":
    main()
