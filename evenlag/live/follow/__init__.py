"""Followers of a published plan, for consumers without pluggable assignors (docs/follow.md; needs confluent-kafka)."""

from evenlag.live.follow.consumer_loop import Follow
from evenlag.live.followed_plan import FollowedPlan, PlanFile, PlanTopic, publish

__all__ = ["Follow", "FollowedPlan", "PlanFile", "PlanTopic", "publish"]
