"""What is said about a request that is tried again: that it is, and after which kind of error. Never its words.

An error of another server may repeat the question, and the library's own log lines hold the error.
"""

import logging
from typing import Final

import stamina
from stamina.instrumentation import RetryDetails

logger: Final = logging.getLogger(__name__)


def log_retries_without_words() -> None:
    """Replace the log lines of `stamina`, which quote the error; for this process, and as often as it is called."""
    stamina.instrumentation.set_on_retry_hooks((_note,))


def _note(details: RetryDetails) -> None:
    logger.debug("retry %d in %.1f s after %s", details.retry_num, details.wait_for, type(details.caused_by).__name__)
