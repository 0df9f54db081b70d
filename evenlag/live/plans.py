"""The former name of `evenlag.live.followed_plan`, which stays importable."""

from evenlag.live.followed_plan import FollowedPlan, PlanFile, PlanTopic, publish

__all__ = ["FollowedPlan", "PlanFile", "PlanTopic", "publish"]
