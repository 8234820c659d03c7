"""Starts a Beam worker process that keeps its log off the user's terminal.

Beam's own start module writes some forty lines a worker to stderr. Errors need no log: they travel
to the caller as exceptions.
"""

from __future__ import annotations

import logging
import sys
import warnings


def main() -> None:
    logging.disable(logging.ERROR)
    warnings.filterwarnings("ignore")
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
