"""Translation of client properties between the names of Kafka's Java clients and of librdkafka.

Properties files may use either. evenlag's own client translates them to librdkafka's names, Spark's Kafka source to
Java's. Messages contain names of properties and paths, never other values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from evenlag.errors import SourceError

HOST_NAMES = "ssl.endpoint.identification.algorithm"
KNOWN = ("sasl.jaas.config", "ssl.truststore.location", "ssl.keystore.location")
"""Java's names that evenlag's own client accepts, in addition to those that librdkafka has too."""

_LOGIN = re.compile(r"([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", re.DOTALL)
_OPTION = re.compile(r"""([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;"']+))""", re.DOTALL)
_SECURITY = "org.apache.kafka.common.security"
_MODULES = {"PLAIN": f"{_SECURITY}.plain.PlainLoginModule", "SCRAM": f"{_SECURITY}.scram.ScramLoginModule"}
# Properties that are given elsewhere: the brokers by the command, the classes by `sasl.mechanism`.
_IMPLIED = {
    "bootstrap.servers",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
}
_STORES = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
}
_OF_STORES = {"ssl.truststore.type", "ssl.truststore.password", "ssl.keystore.type", "ssl.keystore.password"}
_TEXTS = {
    "ssl.truststore.certificates": "ssl.ca.location",
    "ssl.keystore.certificate.chain": "ssl.certificate.location",
    "ssl.keystore.key": "ssl.key.location",
}
_PEM = (".pem", ".crt", ".cer", ".key")


def librdkafka_names(config: Mapping[str, str]) -> dict[str, str]:
    """Return properties by librdkafka's names; if one is given by both names, librdkafka's takes precedence.

    Raises
    ------
    SourceError
        A Java property has no counterpart, such as a truststore in a Java format. The message says what to do.

    Examples
    --------
    >>> login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    >>> librdkafka_names({"sasl.mechanism": "PLAIN", "sasl.jaas.config": login})
    {'sasl.mechanism': 'PLAIN', 'sasl.username': 'u', 'sasl.password': 'p'}
    """
    found: dict[str, str] = {}
    for name, value in config.items():
        if name in _IMPLIED or name in _OF_STORES:
            continue
        if name == "sasl.jaas.config":
            found |= _login(value)
        elif name in _STORES:
            _check_store(name, value, config)
            found |= dict.fromkeys(_STORES[name], value)
        elif name in _TEXTS:
            raise SourceError(f"client property {name!r}: write the text to a file, and name it by {_TEXTS[name]!r}")
    own = {name: value for name, value in config.items() if not of_java(name)}
    if not own.get(HOST_NAMES, "none"):
        own[HOST_NAMES] = "none"  # librdkafka's value for Java's empty one
    return found | own


def java_names(config: Mapping[str, str]) -> dict[str, str]:
    """Return properties by Java's names; if one is given by both names, Java's takes precedence.

    Files of TLS are read here, so that executors do not need them.

    Raises
    ------
    SourceError
        A librdkafka property has no counterpart, or a file cannot be read. The message says what to do.

    Examples
    --------
    >>> java_names({"sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": "p"})["sasl.jaas.config"]
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    """
    given = {name: value for name, value in config.items() if name != "bootstrap.servers"}
    found: dict[str, str] = {}
    if "sasl.mechanisms" in given:
        found["sasl.mechanism"] = given.pop("sasl.mechanisms")
    mechanism = given.get("sasl.mechanism", found.get("sasl.mechanism", "")).upper()
    user, password = given.pop("sasl.username", None), given.pop("sasl.password", None)
    if user is not None and password is not None and "sasl.jaas.config" not in given:
        found["sasl.jaas.config"] = _jaas(mechanism, user, password)
    for name in sorted(given):
        if name in _NO_JAVA or (name.startswith("sasl.oauthbearer.") and name in _OF_TOKENS):
            raise SourceError(f"client property {name!r}: {_NO_JAVA.get(name, _TOKENS)}")
    found |= _pem_texts(given)
    if given.get(HOST_NAMES, "").lower() == "none":
        given[HOST_NAMES] = ""
    given.pop("enable.ssl.certificate.verification", None)
    return found | given


_TOKENS = (
    "Spark's Kafka source uses Java's client; give sasl.jaas.config and sasl.login.callback.handler.class, as for "
    "Kafka's own tools"
)
_OF_TOKENS = {f"sasl.oauthbearer.{part}" for part in ("method", "client.id", "client.secret", "scope")}
_NO_JAVA = {"ssl.crl.location": "Spark's Kafka source uses Java's client, which has no revocation lists; omit it"}


def of_java(name: str) -> bool:
    """Return whether a name is one of Java's that `librdkafka_names` translates or leaves out."""
    return name in _IMPLIED or name in _OF_STORES or name in _STORES or name in _TEXTS or name == "sasl.jaas.config"


def _login(text: str) -> dict[str, str]:
    """Return the properties in Java's `sasl.jaas.config`."""
    match = _LOGIN.fullmatch(text.strip())
    if match is None:
        raise SourceError(
            'client property \'sasl.jaas.config\' is not valid; write MODULE required username="..." password="...";'
        )
    module, options = match[1].rpartition(".")[2], {}
    for name, quoted, single, bare in _OPTION.findall(match[2]):
        options[name] = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) or single or bare
    if module in ("PlainLoginModule", "ScramLoginModule"):
        return {f"sasl.{name}": options[name] for name in ("username", "password") if name in options}
    if module == "OAuthBearerLoginModule":
        names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
        own = {f"sasl.oauthbearer.{to}": options[name] for name, to in names.items() if name in options}
        return {"sasl.oauthbearer.method": "oidc"} | own
    if module == "Krb5LoginModule":
        return {"sasl.kerberos.service.name": options["serviceName"]} if "serviceName" in options else {}
    if module == "IAMLoginModule":
        return {}
    raise SourceError(f"client property 'sasl.jaas.config': evenlag does not support {module}")


def _check_store(name: str, path: str, config: Mapping[str, str]) -> None:
    """Raise an error if a store is not a PEM file, with the commands that convert it."""
    kind = config.get(name.replace("location", "type"), "").upper()
    if kind == "PEM" or (not kind and path.lower().endswith(_PEM)):
        return
    first, *more = _STORES[name]
    steps = [] if kind == "PKCS12" or path.lower().endswith((".p12", ".pfx")) else [
        f"keytool -importkeystore -srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12"
    ]  # fmt: skip
    store = "store.p12" if steps else path
    if more:
        steps.append(f"openssl pkcs12 -in {store} -out client.pem")
        use = f"{first}=client.pem and {more[0]}=client.pem, with ssl.key.password"
    else:
        steps.append(f"openssl pkcs12 -in {store} -nokeys -out ca.pem")
        use = f"{first}=ca.pem"
    raise SourceError(f"client property {name!r}: only Java reads {path}; run {' && '.join(steps)}, and give {use}")


def _jaas(mechanism: str, user: str, password: str) -> str:
    if mechanism.partition("-")[0] not in _MODULES:
        raise SourceError("client property 'sasl.username' needs sasl.mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in (user, password)]
    return f'{_MODULES[mechanism.partition("-")[0]]} required username="{quoted[0]}" password="{quoted[1]}";'


def _pem_texts(given: dict[str, str]) -> dict[str, str]:
    """Remove the files of TLS from properties, and return their contents by Java's names."""
    if given.get("enable.ssl.certificate.verification", "").lower() == "false":
        raise SourceError(
            "client property 'enable.ssl.certificate.verification': Spark's Kafka source uses Java's client, which "
            "always verifies certificates; give ssl.ca.location"
        )
    texts: dict[str, str] = {}
    for java, own in _TEXTS.items():
        path = given.pop(own, None)
        if path is None:
            continue
        try:
            texts[java] = Path(path).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a PEM file"
            raise SourceError(f"client property {own!r}: {path} cannot be read: {reason}") from None
        texts[f"ssl.{java.split('.')[1]}.type"] = "PEM"
    return texts
