"""Starts a Beam worker process that keeps its log off the user's terminal: `PARENT'S PROCESS ID`.

Beam's own start module writes about forty lines per worker to stderr, and the traceback of every
error. Neither is needed: errors reach the caller as exceptions.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import warnings


def main() -> None:
    threading.Thread(target=end_with, args=[int(sys.argv[1])], daemon=True).start()
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
    main()
