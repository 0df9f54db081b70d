"""Followers of a published plan, for consumers that take no assignor (docs/follow.md; needs the extra `follow`)."""

from typing import TYPE_CHECKING

from evenlag.lazy import lazily

if TYPE_CHECKING:
    from evenlag.live.follow.consumer_loop import Follow
    from evenlag.live.followed_plan import FollowedPlan, PlanFile, PlanTopic, publish

__all__ = ["Follow", "FollowedPlan", "PlanFile", "PlanTopic", "publish"]

_HOMES = {
    "Follow": "evenlag.live.follow.consumer_loop",
    "FollowedPlan": "evenlag.live.followed_plan",
    "PlanFile": "evenlag.live.followed_plan",
    "PlanTopic": "evenlag.live.followed_plan",
    "publish": "evenlag.live.followed_plan",
}

if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name
    __getattr__, __dir__ = lazily(__name__, _HOMES)
