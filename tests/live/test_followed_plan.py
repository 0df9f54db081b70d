"""Plans that consumers follow: published to a file or topic under a higher version, read and checked there."""

import json
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from evenlag.errors import EvenlagError, InvalidPlanError, SourceError
from evenlag.live import followed_plan
from evenlag.live.follow import (
    FollowedPlan,
    PlanFile,
    PlanTopic,
    publish,
)
from evenlag.live.followed_plan import UnacknowledgedError, UnreadError, place_of
from tests.support.command import evenlag, refused
from tests.support.plain_kafka import plan

GOOD: Mapping[str, Any] = {"group": "billing", "assignment": {"c1": [["t", 0]], "c2": [["t", 1]]}}


def test_a_plan_is_published_under_a_higher_version_and_read(tmp_path: Path) -> None:
    path = tmp_path / "followed.json"
    file = PlanFile(path, "billing")
    (missing,) = file.news()
    assert str(missing) == f"{path}: cannot be read (no such file or directory)"
    first = publish(GOOD | {"spread": 3, "version": 7}, file)
    assert json.loads(path.read_text()) == {**GOOD, "version": first.version}
    assert file.news() == [first]
    assert file.news() == []
    second = publish(GOOD, file)
    assert second.version > first.version
    assert file.news() == [second]
    path.write_text(json.dumps(GOOD | {"version": 2**62}))
    assert publish(GOOD, file).version == 2**62 + 1
    path.write_text("{")
    (broken,) = file.news()
    assert str(broken).startswith(f"{path}: not valid JSON (")
    time.sleep(0.002)  # the version is then the time in milliseconds, which must have gone on
    assert publish(GOOD, file).version > second.version


BROKEN: list[tuple[Any, str]] = [
    ([], "a plan must be a JSON object with group, version and assignment"),
    (GOOD, "the plan has no version; publish it by `evenlag publish`, which adds one"),
    (GOOD | {"version": 0}, "version must be a whole number from 1, not 0"),
    (GOOD | {"version": "1"}, "version must be a whole number from 1, not '1'"),
    (GOOD | {"version": 1, "group": ""}, "group must be a name, not ''"),
    (GOOD | {"version": 1, "group": "other"}, "a plan for group 'other', not 'billing'"),
    (GOOD | {"version": 1, "assignment": []}, "assignment must map each member to its partitions"),
    (GOOD | {"version": 1, "assignment": {"c1": "t"}}, "member 'c1': partitions must be a list, not t"),
    (
        GOOD | {"version": 1, "assignment": {"c1": [["t", -1]]}},
        "member 'c1': ['t', -1] is not a [topic, partition] pair",
    ),
    (
        GOOD | {"version": 1, "assignment": {"c1": [["t", True]]}},
        "member 'c1': ['t', True] is not a [topic, partition] pair",
    ),
    (
        GOOD | {"version": 1, "assignment": {"c1": [["\ud800", 1]]}},
        "member 'c1': ['\\ud800', 1] is not a [topic, partition] pair",
    ),
    (GOOD | {"version": 1, "assignment": {"c\ud800": []}}, "'c\\ud800' is not a valid member name"),
    (GOOD | {"version": 1, "assignment": {"c1": ["t-1"]}}, "member 'c1': t-1 is not a [topic, partition] pair"),
    (GOOD | {"version": 1, "members": []}, "members must map each member to what is known of it, not []"),
    (GOOD | {"version": 1, "members": {"c1": {"host": 1}}}, "members: 'c1': host must be a text, not 1"),
    (GOOD | {"version": 1, "lags": {"t": [1.5]}}, "lags: 't': a lag must be a whole number from 0, not 1.5"),
    (GOOD | {"version": 1, "lags": {"t": {"one": 1}}}, "lags: 't': 'one' is not a partition"),
    (
        GOOD | {"version": 1, "assignment": {"c1": [["t", 0]], "c2": [["t", 0]]}},
        "the plan assigns t-0 to both 'c1' and 'c2'",
    ),
]


@pytest.mark.parametrize(("document", "message"), BROKEN, ids=[message[:30] for _, message in BROKEN])
def test_an_invalid_plan_is_an_error_that_names_the_place(tmp_path: Path, document: Any, message: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    (error,) = PlanFile(path, "billing").news()
    assert isinstance(error, InvalidPlanError)
    assert str(error).startswith(f"{path}: {message}")


def test_a_member_named_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"group": "billing", "version": 1, "assignment": {"c1": [], "c1": [["t", 0]]}}')
    (error,) = PlanFile(path, "billing").news()
    assert "'c1' is given twice" in str(error)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (GOOD | {"assignment": {"c1": [["t", 0], ["t", 0]]}}, "the plan assigns t-0 to both 'c1' and 'c1'"),
        (GOOD | {"assignment": {"c1": []}}, "assigns no partition; all its consumers would stop"),
        (GOOD | {"group": "other"}, "is for group 'billing', but the plan is for 'other'"),
        ({}, "group must be a name, not None"),
    ],
)
def test_a_broken_plan_is_not_published(tmp_path: Path, document: Mapping[str, Any], message: str) -> None:
    path = tmp_path / "followed.json"
    with pytest.raises(InvalidPlanError, match=message):
        publish(document, PlanFile(path, "billing"))
    assert not path.exists()


def test_the_command_publishes_a_result_file(tmp_path: Path) -> None:
    problem = tmp_path / "problem.json"
    problem.write_text(json.dumps({"group": "billing", "topics": {"t": [5, 4, 3]}, "members": MEMBERS}))
    plan_file, place = tmp_path / "plan.json", tmp_path / "followed.json"
    assert evenlag("plan", problem, "--out", plan_file).returncode == 0
    done = evenlag("publish", plan_file, place)
    assert (done.returncode, done.stderr) == (0, "")
    (published,) = PlanFile(place, "billing").news()
    assert isinstance(published, FollowedPlan)
    planned = json.loads(plan_file.read_text())
    assert published.to_dict()["assignment"] == planned["assignment"]
    assert published.lags == planned["lags"] == {"t": [5, 4, 3]}
    assert done.stdout == f"group billing: version {published.version}, 3 partitions to 2 members, at {place}\n"
    report = json.loads(evenlag("publish", plan_file, place, "--json").stdout)
    assert report["version"] > published.version
    refused(evenlag("publish", problem, place), f"{problem}: is a problem file, not a plan; make one by `evenlag plan")
    refused(evenlag("publish", tmp_path / "none.json", place), "cannot be read")
    refused(
        evenlag("publish", plan_file, "kafka://plans"),
        "kafka://plans: not a topic address; write kafka://HOST:PORT/TOPIC",
    )


MEMBERS = {"c1": {"topics": ["t"]}, "c2": {"topics": ["t"]}}


def test_plans_are_kept_in_a_file_or_in_one_topic() -> None:
    place = place_of("kafka://a:1,b:2/plans", "billing", {"client.id": "c"})
    assert isinstance(place, PlanTopic)
    assert (place.topic, place.group) == ("plans", "billing")
    assert place.config == {"log_level": 0, "client.id": "c", "bootstrap.servers": "a:1,b:2"}
    assert isinstance(place_of("plans.json", "billing"), PlanFile)
    for text, why in {
        "kafka://a/plans": "not a topic address; write kafka://",
        "kafka://a:1/t,u": "several topics; name one topic of plans",
    }.items():
        with pytest.raises(SourceError, match=f"^{text}: {why}"):
            place_of(text, "billing")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            "Broker: Unknown topic or partition; create it with cleanup.policy=compact",
        ),
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            "Broker: Topic authorization failed (the user needs the ACL Describe on the topic); check its name",
        ),
    ],
)
def test_the_error_says_why_a_topic_of_plans_is_missing(
    monkeypatch: pytest.MonkeyPatch, error: int, message: str
) -> None:
    described = SimpleNamespace(topics={"plans": SimpleNamespace(error=KafkaError(error), partitions={})})
    reader = SimpleNamespace(list_topics=lambda *_, **__: described, close=lambda: None)
    monkeypatch.setattr(confluent_kafka, "Consumer", lambda _: reader)
    (news,) = PlanTopic("plans", {}, "billing").news()
    assert str(news) == f"topic plans: {message}"


@pytest.mark.slow
def test_after_a_failed_write_a_topic_is_read_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_plan, "ANSWER_LIMIT", 0.1)
    place = PlanTopic("plans", {"bootstrap.servers": "127.0.0.1:9", "log_level": 0}, "billing")
    with pytest.raises(SourceError, match=r"topic plans: no Kafka broker answers at 127\.0\.0\.1:9 "):
        place.write(plan(1, c1="0"))
    assert place._reader is None
    (unread,) = place.news()
    assert "(Connect to ipv4#127.0.0.1:9 failed: Connection refused); check the address" in str(unread)


AT = "sasl_plaintext://h:1/bootstrap: "
REFUSED = KafkaError(
    KafkaError._TRANSPORT, f"{AT}Connect to h:1 failed: Connection refused (after 0ms in state CONNECT)"
)
LOGIN = KafkaError(KafkaError._AUTHENTICATION, f"{AT}Authentication failed (after 301ms in state AUTH_REQ)")
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


@pytest.mark.parametrize(
    ("errors", "requests", "message"),
    [
        (
            [REFUSED, DOWN, REFUSED],
            1,
            "no Kafka broker answers at h:1 (Connect to h:1 failed: Connection refused); check",
        ),
        ([REFUSED], 2, "no Kafka broker answers at h:1 within 11 s (Connect to h:1 failed: Connection refused); check"),
        ([DOWN], 1, "no Kafka broker answers at h:1 (the connection is closed); check the address"),
        ([], 2, "no Kafka broker answers at h:1 within 11 s (no answer); check the address"),
        ([LOGIN, DOWN], 1, "the login fails at h:1 (Authentication failed); check sasl.mechanism"),
    ],
)
def test_the_error_says_why_no_broker_of_plans_answers(
    monkeypatch: pytest.MonkeyPatch, errors: list[KafkaError], requests: int, message: str
) -> None:
    asked: list[float] = []

    def consumer(settings: Mapping[str, Any]) -> SimpleNamespace:
        def list_topics(_: str, timeout: float) -> None:
            asked.append(timeout)
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "Failed to get metadata"))

        def poll(_: float) -> None:
            for each in errors:
                settings["error_cb"](each)

        return SimpleNamespace(list_topics=list_topics, poll=poll, close=lambda: None)

    monkeypatch.setattr(confluent_kafka, "Consumer", consumer)
    (news,) = PlanTopic("plans", {"bootstrap.servers": "h:1"}, "billing").news()
    assert str(news).startswith(f"topic plans: {message}")
    assert len(asked) == requests


@pytest.mark.slow
def test_nothing_is_published_when_the_previous_plan_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have a higher version, and followers would keep it."""
    folder = tmp_path / "plans.json"
    folder.mkdir()
    with pytest.raises(SourceError, match=r"plans\.json: cannot be read \(is a directory\)"):
        publish(GOOD, PlanFile(folder, "billing"))
    monkeypatch.setattr(followed_plan, "ANSWER_LIMIT", 0.1)
    topic = PlanTopic("plans", {"bootstrap.servers": "127.0.0.1:9", "log_level": 0}, "billing")
    with pytest.raises(SourceError, match=r"topic plans: no Kafka broker answers at 127\.0\.0\.1:9 \([^{}]+\); check"):
        publish(GOOD, topic)


def test_a_topic_of_plans_needs_a_group() -> None:
    with pytest.raises(SourceError, match="topic plans: the group is unknown"):
        PlanTopic("plans", {"bootstrap.servers": "localhost:9092"})


class MemoryTopic(PlanTopic):
    """A topic of plans in memory."""

    def news(self) -> list[FollowedPlan | EvenlagError]:
        return []

    def write(self, plan: FollowedPlan) -> None:
        assert not plan.warnings


class SharedTopic(PlanTopic):
    """A topic of plans in memory, to which others write at times that the test chooses."""

    def __init__(self, *records: bytes) -> None:
        super().__init__("plans", {}, "billing")
        self.records = list(records)
        self.before: list[bytes] = []  # records of others that come right before this writer's
        self.after: list[bytes] = []  # and right after them
        self.behind: list[bytes] = []  # records of another partition, which are read last
        self.writes = self.fails_at = 0
        self.lost = ""  # "answer" or "plan": nothing is acknowledged
        self.unread: list[FollowedPlan | EvenlagError] = []  # in place of the records

    def news(self) -> list[FollowedPlan | EvenlagError]:
        records = [*self.records, *self.behind]
        return self.unread or [followed_plan._parsed(each, self.group, "topic plans") for each in records]

    def _append(self, plan: FollowedPlan) -> None:
        self.writes += 1
        if self.writes == self.fails_at:
            raise SourceError("topic plans: the plan was not written (no answer in time)")
        self.records += [*self.before, *([] if self.lost == "plan" else [record(plan)]), *self.after]
        self.before = self.after = []
        if self.lost:
            raise UnacknowledgedError("topic plans: the plan was not written (timed out)")


def record(plan: FollowedPlan) -> bytes:
    return json.dumps(plan.to_dict()).encode()


def test_of_two_plans_written_at_once_the_newer_one_is_the_last_record() -> None:
    older, newer = plan(1_500, c1="01"), plan(2_000, c1="0", c2="1")
    for before, after in ([newer], []), ([], [newer]):
        topic = SharedTopic(record(plan(1_000, c1="01")))
        topic.before, topic.after = list(map(record, before)), list(map(record, after))
        with pytest.raises(SourceError, match="topic plans: another plan of group 'billing' was published at the same"):
            topic.write(older)
        assert topic.news()[-1] == newer
    topic = SharedTopic()
    topic.after = [record(older)]  # by a writer that is killed before it looks at the topic again
    topic.write(newer)
    assert topic.news() == [newer, older, newer]


def test_a_topic_that_never_ends_with_the_newest_plan_gets_it_a_few_times() -> None:
    topic = SharedTopic()
    topic.behind = [record(plan(1_000, c1="01"))]
    with pytest.raises(SourceError, match=r"^plan 2000 was written, but may not be the last one: .* one partition$"):
        topic.write(plan(2_000, c1="0"))
    assert topic.writes == 1 + followed_plan.REPAIRS


@pytest.mark.parametrize("lost", ["", "answer"])
def test_a_plan_that_could_not_be_written_again_was_written_once(lost: str) -> None:
    topic = SharedTopic()
    topic.lost = lost
    topic.after, topic.fails_at = [record(plan(1_000, c1="01"))], 2
    with pytest.raises(SourceError, match=r"^plan 2000 was written, but may not .*: .*\(no answer in time\)"):
        topic.write(plan(2_000, c1="0"))


def test_a_plan_is_looked_for_in_the_topic_if_the_answer_is_lost() -> None:
    topic = SharedTopic(record(plan(1_000, c1="01")))
    topic.lost = "answer"
    topic.write(plan(2_000, c1="0"))
    topic.lost = "plan"
    with pytest.raises(SourceError, match=r"^topic plans: the plan was not written \(timed out\)$"):
        topic.write(plan(3_000, c1="0"))
    topic.after = [record(plan(5_000, c1="01"))]
    with pytest.raises(SourceError, match="another plan of group 'billing' was published at the same time"):
        topic.write(plan(4_000, c1="0"))
    topic.unread = [UnreadError("topic plans: cannot be read")]
    with pytest.raises(SourceError, match=r"^plan 6000 may have been written: topic plans: cannot be read$"):
        topic.write(plan(6_000, c1="0"))


def test_of_two_plans_with_one_version_the_first_is_the_last_record() -> None:
    """Followers that know it refuse another plan of its version."""
    first, second = plan(2_000, c1="01"), plan(2_000, c1="0", c2="1")
    topic = SharedTopic()
    topic.before = [record(first)]
    with pytest.raises(SourceError, match="another plan of group 'billing' was published at the same time"):
        topic.write(second)
    assert topic.news()[-1] == first


@pytest.mark.parametrize(("content", "why"), [(b"{", "not valid JSON"), (b"", "no plan; it was deleted")])
def test_a_plan_that_is_not_the_last_record_is_not_taken_for_published(content: bytes, why: str) -> None:
    topic = SharedTopic()
    topic.after = [content]
    with pytest.raises(SourceError, match=f"^plan 5 was written, but may not be the last one: topic plans: {why}"):
        topic.write(plan(5, c1="0"))
    assert topic.records[-1] == content


@pytest.mark.parametrize(
    ("names", "failure", "note"),
    [
        ((), None, None),
        (("c1", "other"), None, None),
        (("other", "another"), None, "none of its 2 members bears a name of the plan, so nobody follows it"),
        ((), KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer")), "its members cannot be read (no answer)"),
    ],
)
def test_publishing_to_a_topic_returns_a_note_on_names_that_nobody_bears(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], failure: Exception | None, note: str | None
) -> None:
    answer: Future[Any] = Future()
    known = {"group_instance_id": None, "host": "/10.0.0.9"}
    members = [SimpleNamespace(member_id=name, client_id=name, **known) for name in names]
    if failure is not None:
        answer.set_exception(failure)
    else:
        answer.set_result(SimpleNamespace(members=members))
    asked: list[Any] = []

    def client(config: dict[str, Any]) -> Any:
        asked.append(config)
        return SimpleNamespace(describe_consumer_groups=lambda groups, **_: {groups[0]: answer})

    monkeypatch.setattr("confluent_kafka.admin.AdminClient", client)
    topic = MemoryTopic("plans", {"bootstrap.servers": "b:1", "group.id": "billing", "enable.auto.commit": False})
    published = publish(GOOD, topic)
    assert asked == [{"bootstrap.servers": "b:1"}]
    assert [each.startswith(f"group billing: {note}") for each in published.warnings] == [True] * (note is not None)
    assert "warnings" not in published.to_dict()
    assert published == replace(published, warnings=())


def test_a_plan_is_not_published_to_a_folder(tmp_path: Path) -> None:
    result, new = tmp_path / "result.json", tmp_path / "new"
    result.write_text(json.dumps(GOOD))
    refused(evenlag("publish", result, f"{new}/"), f"{new}/: is a folder; name a file, such as {new}/published.json")
    refused(evenlag("publish", result, tmp_path), f"{tmp_path}: is a folder; name a file")
    assert list(tmp_path.iterdir()) == [result]
