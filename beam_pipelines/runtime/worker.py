"""Starts a Beam worker process that keeps its log off the user's terminal.

Beam's own start module writes about forty lines per worker to stderr, and the traceback of every
error. Neither is needed: errors reach the caller as exceptions.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings


def main() -> None:
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    from apache_beam.runners.worker import sdk_worker_main

    # An error that ends the worker itself leaves this block as an exception, so it is still shown.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
