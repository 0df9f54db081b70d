"""Settings of the Kafka client: from a properties file to kafka-python's parameters."""

import re
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evenlag.errors import SourceError

_PROPERTY = re.compile(r"([^\s=:]+)\s*[=:]?\s*(.*)")


def read_client_config(path: str | Path) -> dict[str, str]:
    """Read a properties file as of `--command-config`: `name=value` a line, comments start with `#` or `!`.

    Raises
    ------
    SourceError
        The file cannot be read, or a line is no property; the message names the line but not what it says.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    config: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip()[0] in "#!":
            continue
        match = _PROPERTY.fullmatch(line.strip())
        if match is None or not match[2]:
            raise SourceError(f"{path}, line {number}: is no property; write name=value")
        config[match[1]] = match[2]
    return config


def kafka_python_settings(config: Mapping[str, str]) -> dict[str, Any]:
    """Translate properties under librdkafka's names into the parameters of kafka-python.

    What makes tokens for OAUTHBEARER is no parameter of it: `token_endpoint` has the fields of a `TokenEndpoint`.

    Raises
    ------
    SourceError
        A property is unknown, its value makes no sense, or the file that it names is not there; the message names
        the property and, of values, only paths.

    Examples
    --------
    >>> kafka_python_settings({"security.protocol": "sasl_ssl", "ssl.endpoint.identification.algorithm": "none"})
    {'security_protocol': 'SASL_SSL', 'ssl_check_hostname': False}
    """
    settings: dict[str, Any] = {}
    for name, value in config.items():
        if name not in _PROPERTIES:
            known = ", ".join(_PROPERTIES)
            raise SourceError(f"client property {name!r} is not known; properties have librdkafka's names: {known}")
        parameter, convert = _PROPERTIES[name]
        try:
            settings[parameter] = convert(value)
        except KeyError:
            raise SourceError(f"client property {name!r} has a value that it cannot have") from None
        except SourceError as error:
            raise SourceError(f"client property {name!r}: {error}") from None
    oauth = {name: settings.pop(name) for name in list(settings) if name.startswith("_oauth_")}
    if settings.get("sasl_mechanism") == "OAUTHBEARER":
        for name, (parameter, _) in _PROPERTIES.items():
            if parameter.startswith("_oauth_") and parameter != "_oauth_scope" and parameter not in oauth:
                raise SourceError(f"client property {name!r} is missing; OAUTHBEARER needs it")
        del oauth["_oauth_method"]
        settings["token_endpoint"] = {name.removeprefix("_oauth_"): value for name, value in oauth.items()}
    if not settings.pop("_verify", True):
        settings["ssl_context"] = _unverified(settings)
    return settings


def _unverified(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """A context that takes any certificate, as `enable.ssl.certificate.verification=false` asks for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate := settings.get("ssl_certfile"):
        context.load_cert_chain(certificate, settings.get("ssl_keyfile"), settings.get("ssl_password"))
    return context


def _one_of(*values: str) -> Callable[[str], str]:
    return lambda value: {each: each for each in values}[value.upper()]


def _file(path: str) -> str:
    if not Path(path).is_file():
        raise SourceError(f"no such file: {path}")
    return path


def _flag(yes: str, no: str) -> Callable[[str], bool]:
    return lambda value: {yes: True, no: False}[value.lower()]


_PROTOCOL = _one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISM = _one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM")
_PROPERTIES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "client.id": ("client_id", str),
    "security.protocol": ("security_protocol", _PROTOCOL),
    "sasl.mechanism": ("sasl_mechanism", _MECHANISM),
    "sasl.mechanisms": ("sasl_mechanism", _MECHANISM),
    "sasl.username": ("sasl_plain_username", str),
    "sasl.password": ("sasl_plain_password", str),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", str),
    "sasl.oauthbearer.method": ("_oauth_method", _one_of("OIDC")),
    "sasl.oauthbearer.token.endpoint.url": ("_oauth_url", str),
    "sasl.oauthbearer.client.id": ("_oauth_client_id", str),
    "sasl.oauthbearer.client.secret": ("_oauth_secret", str),
    "sasl.oauthbearer.scope": ("_oauth_scope", str),
    "ssl.ca.location": ("ssl_cafile", _file),
    "ssl.certificate.location": ("ssl_certfile", _file),
    "ssl.key.location": ("ssl_keyfile", _file),
    "ssl.key.password": ("ssl_password", str),
    "ssl.crl.location": ("ssl_crlfile", _file),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", _flag("https", "none")),
    "enable.ssl.certificate.verification": ("_verify", _flag("true", "false")),
}
