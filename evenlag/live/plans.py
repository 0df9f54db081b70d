"""The former name of `evenlag.live.followed_plan`, kept for existing imports."""

from evenlag.live.followed_plan import FollowedPlan, PlanFile, PlanTopic, publish

__all__ = ["FollowedPlan", "PlanFile", "PlanTopic", "publish"]
