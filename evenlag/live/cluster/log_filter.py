"""Secrets are kept out of what kafka-python logs."""

import logging
from collections.abc import Iterable


class WithoutSecrets(logging.Filter):
    """Drops what kafka-python logs with a secret in it: at the level DEBUG, the bytes by which it logs in."""

    def __init__(self, secrets: Iterable[str]):
        super().__init__()
        self._forms: set[str] = set()
        for secret in secrets:
            self.add(secret)
        self._loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name[:6] == "kafka."]

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record may be logged."""
        said = record.getMessage()
        return not any(form in said for form in self._forms)

    def add(self, secret: str) -> None:
        """Look for one more."""
        self._forms |= {secret, repr(secret)[1:-1], repr(secret.encode())[2:-1]}

    def on(self) -> None:
        """Filter from now on."""
        for logger in self._loggers:
            logger.addFilter(self)

    def off(self) -> None:
        """Filter no more."""
        for logger in self._loggers:
            logger.removeFilter(self)
