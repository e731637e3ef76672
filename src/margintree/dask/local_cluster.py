"""Workers on this machine that can be reached only from it, and that serve no web pages.

Nodes of Dask open an HTTP server even if there is no dashboard (``dashboard_address=None``): the scheduler on port 8787
or, with a warning, on another one.
"""

import logging
from typing import Any

from distributed import Nanny, Scheduler, SpecCluster, Worker

LOOPBACK = "127.0.0.1"


class _WithoutPages:
    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


class PlainScheduler(_WithoutPages, Scheduler):  # type: ignore[misc]
    """A scheduler without an HTTP server."""


class PlainWorker(_WithoutPages, Worker):  # type: ignore[misc]
    """A worker without an HTTP server."""


def local_cluster(n_workers: int, bytes_per_worker: int) -> SpecCluster:
    """Start workers of one thread, each a process that is started again if it dies or takes more memory than given."""
    options = {"host": LOOPBACK, "nthreads": 1, "memory_limit": bytes_per_worker, "worker_class": PlainWorker}
    worker = {"cls": Nanny, "options": {**options, "silence_logs": logging.WARNING}}
    scheduler = {"cls": PlainScheduler, "options": {"host": LOOPBACK, "port": 0}}
    return SpecCluster(dict.fromkeys(range(n_workers), worker), scheduler, silence_logs=logging.WARNING)
