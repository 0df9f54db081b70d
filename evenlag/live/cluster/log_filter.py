"""Log filter that keeps secrets out of kafka-python's log."""

import logging
from collections.abc import Iterable


class WithoutSecrets(logging.Filter):
    """Filter that drops log records with secrets: at level DEBUG, kafka-python logs the bytes of a login."""

    def __init__(self, secrets: Iterable[str]):
        super().__init__()
        self._forms: set[str] = set()
        for secret in secrets:
            self.add(secret)
        self._loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name[:6] == "kafka."]

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record may be logged."""
        message = record.getMessage()
        return not any(form in message for form in self._forms)

    def add(self, secret: str) -> None:
        """Add a secret."""
        self._forms |= {secret, repr(secret)[1:-1], repr(secret.encode())[2:-1]}

    def on(self) -> None:
        """Start filtering."""
        for logger in self._loggers:
            logger.addFilter(self)

    def off(self) -> None:
        """Stop filtering."""
        for logger in self._loggers:
            logger.removeFilter(self)
