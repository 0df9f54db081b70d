"""Client properties under Java's names and under librdkafka's, turned into one another."""

import re
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenlag.errors import SourceError
from evenlag.live import read_client_config
from evenlag.live.cluster.client_config import kafka_python_settings
from evenlag.live.cluster.java_names import java_names, librdkafka_names
from tests.support.command import evenlag, refused

TLS = Path(__file__).parents[1] / "tls"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
texts = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), min_size=1)


# ---- Java's, for evenlag's own client --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("login", "expected"),
    [
        (f'{PLAIN} required username="u" password="p";', {"sasl.username": "u", "sasl.password": "p"}),
        (f"{SCRAM}  required\n username='u'\n password='p q'  ;", {"sasl.username": "u", "sasl.password": "p q"}),
        (f'{SCRAM} required username=u password="a\\"b\\\\c;d";', {"sasl.username": "u", "sasl.password": 'a"b\\c;d'}),
        (f'{SCRAM} required username="u" password="p" tokenauth="true";', {"sasl.username": "u", "sasl.password": "p"}),
        (
            f'{OAUTH} required clientId="c" clientSecret="s" scope="x y";',
            {
                "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": "s", "sasl.oauthbearer.scope": "x y",
            },
        ),
        (
            'com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true serviceName="kafka";',
            {"sasl.kerberos.service.name": "kafka"},
        ),
        ("software.amazon.msk.auth.iam.IAMLoginModule required;", {}),
    ],
)  # fmt: skip
def test_a_java_login_is_read(login: str, expected: dict[str, str]) -> None:
    assert librdkafka_names({"sasl.jaas.config": login, "security.protocol": "SASL_SSL"}) == expected | {
        "security.protocol": "SASL_SSL"
    }


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sasl.jaas.config": "hunter2"}, "'sasl.jaas.config' is not valid; write MODULE required username="),
        ({"sasl.jaas.config": 'com.x.OwnModule required username="hunter2";'}, "evenlag does not support OwnModule"),
        ({"ssl.truststore.location": "/a/trust.jks", "ssl.truststore.password": "hunter2"},
         "only Java reads /a/trust.jks; run keytool -importkeystore -srckeystore /a/trust.jks -destkeystore store.p12 "
         "-deststoretype PKCS12 && openssl pkcs12 -in store.p12 -nokeys -out ca.pem, and give ssl.ca.location=ca.pem"),
        ({"ssl.truststore.location": "t.p12"}, "run openssl pkcs12 -in t.p12 -nokeys -out ca.pem, and give"),
        ({"ssl.keystore.location": "k", "ssl.keystore.type": "PKCS12"},
         "openssl pkcs12 -in k -out client.pem, and give ssl.certificate.location=client.pem and ssl.key.location="),
        ({"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "JKS"}, "only Java reads ca.pem"),
        ({"ssl.keystore.key": "hunter2"}, "'ssl.keystore.key': write the text to a file, and name it by "
         "'ssl.key.location'"),
        ({"ssl.ca.locaton": "hunter2"}, "client property 'ssl.ca.locaton'; did you mean 'ssl.ca.location'?"),
        ({"sasl.jass.config": "hunter2"}, "client property 'sasl.jass.config'; did you mean 'sasl.jaas.config'?"),
        ({"fetch.min.bytes": "hunter2"}, "client property 'fetch.min.bytes'"),
    ],
)  # fmt: skip
def test_a_java_property_without_a_counterpart_is_refused_with_a_remedy(config: dict[str, str], message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)) as caught:
        kafka_python_settings(config)
    assert "hunter2" not in str(caught.value)


def test_a_properties_file_of_kafkas_tools_configures_our_client(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "bootstrap.servers=broker:9093\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={SCRAM} required \\\n    username=\"u\" \\\n    password=\"p\";\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={TLS / 'certificate.pem'}\n"
        "ssl.endpoint.identification.algorithm=\n"
    )  # fmt: skip
    settings = kafka_python_settings(read_client_config(path))
    context = settings.pop("ssl_context")
    assert isinstance(context, ssl.SSLContext)
    assert (context.check_hostname, len(context.get_ca_certs())) == (False, 1)
    assert settings == {
        "security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    }  # fmt: skip


def test_librdkafkas_name_wins_over_javas() -> None:
    both = {"sasl.username": "mine", "sasl.jaas.config": f'{PLAIN} required username="u" password="p";'}
    assert librdkafka_names(both) == {"sasl.username": "mine", "sasl.password": "p"}


# ---- librdkafka's, for Spark's Kafka source --------------------------------------------------------------------------


def test_files_and_logins_are_written_as_java_expects_them(tmp_path: Path) -> None:
    authority, key = tmp_path / "ca.pem", tmp_path / "key.pem"
    authority.write_text("CA")
    key.write_text("KEY")
    config = {
        "bootstrap.servers": "b:1", "security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "u", "sasl.password": 'p"\\', "ssl.ca.location": str(authority),
        "ssl.certificate.location": str(authority), "ssl.key.location": str(key), "ssl.key.password": "k",
        "ssl.endpoint.identification.algorithm": "none", "enable.ssl.certificate.verification": "true",
        "request.timeout.ms": "9",
    }  # fmt: skip
    assert java_names(config) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM} required username="u" password="p\\"\\\\";',
        "ssl.truststore.certificates": "CA",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.certificate.chain": "CA",
        "ssl.keystore.key": "KEY",
        "ssl.keystore.type": "PEM",
        "ssl.key.password": "k",
        "ssl.endpoint.identification.algorithm": "",
        "request.timeout.ms": "9",
    }


def test_java_names_stay_as_they_are() -> None:
    config = {"security.protocol": "SSL", "ssl.truststore.location": "/a/trust.jks", "ssl.truststore.password": "x"}
    assert java_names(config) == config
    login = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "x", "sasl.username": "u", "sasl.password": "p"}
    assert java_names(login) == {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "x"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"ssl.ca.location": "/none.pem"}, "'ssl.ca.location': /none.pem cannot be read: No such file"),
        ({"ssl.crl.location": "/none.pem"}, "'ssl.crl.location': Spark's Kafka source uses Java's client"),
        ({"enable.ssl.certificate.verification": "false"}, "which always verifies certificates; give ssl.ca.location"),
        ({"sasl.oauthbearer.client.secret": "hunter2"}, "give sasl.jaas.config and sasl.login.callback.handler.class"),
        ({"sasl.mechanism": "GSSAPI", "sasl.username": "u", "sasl.password": "hunter2"}, "PLAIN, SCRAM-SHA-256"),
    ],
)
def test_a_property_that_java_lacks_is_refused_with_a_remedy(config: dict[str, str], message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)) as caught:
        java_names(config)
    assert "hunter2" not in str(caught.value)


@given(st.sampled_from(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]), texts, texts)
def test_a_login_survives_translation_there_and_back(mechanism: str, user: str, password: str) -> None:
    config = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
    assert librdkafka_names(java_names(config)) == config


def test_the_command_names_a_wrong_client_property(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    path = tmp_path / "client.properties"
    path.write_text("ssl.ca.location=/none.pem\n")
    done = evenlag("fleet", "replay", "kafka://127.0.0.1:1/t", "--command-config", path)
    refused(done, "client property 'ssl.ca.location': /none.pem cannot be read")


def test_a_properties_file_is_read_and_an_error_names_the_line_without_its_text(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "# comment\n! comment\n\nsecurity.protocol=SASL_SSL\n sasl.password = a=b#c \nssl.ca.location: /ca\n"
    )
    assert read_client_config(path) == {
        "security.protocol": "SASL_SSL",
        "sasl.password": "a=b#c",
        "ssl.ca.location": "/ca",
    }
    path.write_text("a=1\nsecret\n")
    with pytest.raises(SourceError, match=r"client\.properties, line 2: not a property") as caught:
        read_client_config(path)
    assert "secret" not in str(caught.value)
    with pytest.raises(SourceError, match=r"absent: cannot be read: No such file"):
        read_client_config(tmp_path / "absent")
