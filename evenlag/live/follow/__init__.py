"""Followers of a published plan, for consumers that take no assignor (docs/follow.md; needs the extra `follow`)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.live.follow.consumer_loop import Follow as Follow
    from evenlag.live.followed_plan import FollowedPlan as FollowedPlan
    from evenlag.live.followed_plan import PlanFile as PlanFile
    from evenlag.live.followed_plan import PlanTopic as PlanTopic
    from evenlag.live.followed_plan import publish as publish

_HOMES = {
    "evenlag.live.follow.consumer_loop": "Follow",
    "evenlag.live.followed_plan": "FollowedPlan PlanFile PlanTopic publish",
}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__, __getattr__, __dir__ = lazily(__name__, _HOMES)
