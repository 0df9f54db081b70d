"""Tokens for the SASL mechanism OAUTHBEARER, by OAuth's client credentials grant."""

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from evenlag.errors import SourceError
from evenlag.live.kafka_python import AbstractTokenProvider

LONGEST_WAIT = 10.0  # seconds for the endpoint's answer
USED_UNTIL = 0.8  # share of a token's lifetime


@dataclass(frozen=True)
class TokenEndpoint:
    """A token endpoint, with client id, secret and scope."""

    url: str
    client_id: str
    secret: str
    scope: str | None = None


class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
    """Provider of tokens for kafka-python, which reuses a token until it is about to expire.

    Parameters
    ----------
    came : callable
        Called with each new token before it is used, so that it can be kept out of logs.

    References
    ----------
    RFC 6749, section 4.4 (client credentials grant); RFC 7628 (OAUTHBEARER).
    """

    def __init__(self, endpoint: TokenEndpoint, came: Callable[[str], None]):
        self._endpoint, self._came = endpoint, came
        self._token, self._until = "", 0.0

    def token(self) -> str:
        """Return a token.

        Raises
        ------
        SourceError
            The endpoint returns none. The message names the endpoint but no secret.
        """
        if time.monotonic() >= self._until:
            self._token, life = _fetched(self._endpoint)
            self._until = time.monotonic() + USED_UNTIL * life
            self._came(self._token)
        return self._token


def _fetched(endpoint: TokenEndpoint) -> tuple[str, float]:
    """Request a new token, and return it with its lifetime in seconds."""
    form = {"grant_type": "client_credentials"} | ({"scope": endpoint.scope} if endpoint.scope else {})
    login = f"{quote(endpoint.client_id, safe='')}:{quote(endpoint.secret, safe='')}"
    headers = {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}", "Accept": "application/json"}
    place = f"token endpoint {endpoint.url}"
    if not endpoint.url.lower().startswith(("https://", "http://")):
        raise SourceError(f"{place}: must begin with https://")
    try:
        with urlopen(Request(endpoint.url, urlencode(form).encode(), headers), timeout=LONGEST_WAIT) as answer:
            document = json.load(answer)
        return str(document["access_token"]), float(document.get("expires_in", 0))
    except HTTPError as error:
        with error:
            raise SourceError(f"{place}: HTTP {error.code} {error.reason}; check client id and secret") from None
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{place}: returned no token: {error}") from None
