"""Client properties from a properties file, and their translation to kafka-python's parameters."""

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evenlag.errors import SourceError
from evenlag.live.cluster.java_names import HOST_NAMES, KNOWN, librdkafka_names, of_java
from evenlag.model.names import did_you_mean

_PROPERTY = re.compile(r"([^\s=:]+)\s*[=:]?\s*(.*)")


def read_client_config(path: str | Path) -> dict[str, str]:
    """Read a properties file such as for `--command-config`, with one `name=value` per line.

    Comments start with `#` or `!`. A line that ends with a backslash continues on the next one.

    Raises
    ------
    SourceError
        The file cannot be read, or a line is not a property. The message has the line number but not the text.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    config: dict[str, str] = {}
    for number, line in _joined(lines):
        match = _PROPERTY.fullmatch(line)
        if match is None or not (match[2] or match[1] == HOST_NAMES):
            raise SourceError(f"{path}, line {number}: not a property; write name=value")
        config[match[1]] = match[2]
    return config


def _joined(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines with properties, each with the number of its first line."""
    parts, first = "", 0
    for number, text in enumerate(lines, 1):
        line = text.strip()
        if not parts and (not line or line[0] in "#!"):
            continue
        first = first if parts else number
        if line.endswith("\\") and not line.endswith("\\\\"):
            parts += line[:-1]
            continue
        yield first, parts + line
        parts = ""
    if parts:
        yield first, parts


def own_properties(config: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that evenlag's own client has; Java's client, which Spark uses, has more."""
    return {name: value for name, value in config.items() if name in _PROPERTIES or of_java(name)}


def can_log_in(config: Mapping[str, str]) -> bool:
    """Return whether evenlag's own client can use these properties; only Java's client has some logins and stores."""
    try:
        kafka_python_settings(config)
    except SourceError:
        return False
    return True


def kafka_python_settings(config: Mapping[str, str]) -> dict[str, Any]:
    """Translate properties, by librdkafka's names or Java's, to parameters of kafka-python.

    In addition, `token_endpoint` has the fields of a `TokenEndpoint` for OAUTHBEARER, and `ssl_context` the loaded
    files of TLS.

    Raises
    ------
    SourceError
        A property is unknown or missing, its value is invalid, or its file cannot be used. The message names the
        property, and no values except paths.

    Examples
    --------
    >>> kafka_python_settings({"client.id": "lags", "security.protocol": "plaintext"})
    {'client_id': 'lags', 'security_protocol': 'PLAINTEXT'}
    """
    settings: dict[str, Any] = {}
    for name, value in librdkafka_names(config).items():
        if name not in _PROPERTIES:
            near = did_you_mean(name, (*_PROPERTIES, *KNOWN)) or ";"
            raise SourceError(f"unknown client property {name!r}{near} known are {', '.join(_PROPERTIES)}")
        parameter, convert = _PROPERTIES[name]
        try:
            settings[parameter] = convert(value)
        except KeyError:
            raise SourceError(f"client property {name!r} has an invalid value") from None
        except SourceError as error:
            raise SourceError(f"client property {name!r}: {error}") from None
    _check_login(settings)
    oauth = {name: settings.pop(name) for name in list(settings) if name.startswith("_oauth_")}
    if settings.get("sasl_mechanism") == "OAUTHBEARER":
        del oauth["_oauth_method"]
        settings["token_endpoint"] = {name.removeprefix("_oauth_"): value for name, value in oauth.items()}
    tls = {name: settings.pop(name) for name in list(settings) if name.startswith("_tls_")}
    if settings.get("security_protocol", "").endswith("SSL"):
        settings["ssl_context"] = _context(tls)
    return settings


def _check_login(settings: Mapping[str, Any]) -> None:
    """Raise an error that names a missing property of the login, because kafka-python does not name it."""
    mechanism, protocol = settings.get("sasl_mechanism"), settings.get("security_protocol", "PLAINTEXT")
    if mechanism is None:
        if protocol.startswith("SASL"):
            raise SourceError(f"client property 'sasl.mechanism' is missing; {protocol} needs it")
        return
    for name in _NEEDED.get(mechanism, ()):
        if _PROPERTIES[name][0] not in settings:
            raise SourceError(f"client property {name!r} is missing; {mechanism} needs it")
    package = _PACKAGES.get(mechanism)
    if package is not None and find_spec(package) is None:
        raise SourceError(f"client property 'sasl.mechanism': {mechanism} needs the package {package}")


def _context(tls: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the TLS context; kafka-python's own lacks revocation lists, and prompts for a key's password."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.get("_tls_hostname", True)
    if not tls.get("_tls_verify", True):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "_tls_ca" not in tls:
        context.load_default_certs()
    password = tls.get("_tls_password", "")
    loading: dict[str, Callable[[str], object]] = {
        "ssl.ca.location": context.load_verify_locations,
        "ssl.crl.location": context.load_verify_locations,
        "ssl.certificate.location": lambda path: context.load_cert_chain(path, tls.get("_tls_key"), lambda: password),
    }
    for name, load in loading.items():
        path = tls.get(_PROPERTIES[name][0])
        try:
            if path is not None:
                load(path)
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            more = "; ssl.key.location or ssl.key.password may be wrong" if name == "ssl.certificate.location" else ""
            raise SourceError(f"client property {name!r}: {path} cannot be used ({error}){more}") from None
    if "_tls_crl" in tls:
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def _one_of(*values: str) -> Callable[[str], str]:
    return lambda value: {each: each for each in values}[value.upper()]


def _file(path: str) -> str:
    if not Path(path).is_file():
        raise SourceError(f"no such file: {path}")
    return path


def _flag(yes: str, no: str) -> Callable[[str], bool]:
    return lambda value: {yes: True, no: False}[value.lower()]


_LOGIN = ("sasl.username", "sasl.password")
_NEEDED = {
    "PLAIN": _LOGIN,
    "SCRAM-SHA-256": _LOGIN,
    "SCRAM-SHA-512": _LOGIN,
    "OAUTHBEARER": (
        "sasl.oauthbearer.method", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
    ),
}  # fmt: skip
_PACKAGES = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}
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
    "ssl.ca.location": ("_tls_ca", _file),
    "ssl.certificate.location": ("_tls_certificate", _file),
    "ssl.key.location": ("_tls_key", _file),
    "ssl.key.password": ("_tls_password", str),
    "ssl.crl.location": ("_tls_crl", _file),
    "ssl.endpoint.identification.algorithm": ("_tls_hostname", _flag("https", "none")),
    "enable.ssl.certificate.verification": ("_tls_verify", _flag("true", "false")),
}
