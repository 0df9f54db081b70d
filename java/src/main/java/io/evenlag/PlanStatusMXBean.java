package io.evenlag;

/**
 * What a consumer knows of its group's plan, by JMX as
 * {@code io.evenlag:type=PlanAssignor,group="…",client-id="…"}.
 */
public interface PlanStatusMXBean {
    /** Returns the version of the newest valid plan that this consumer has read; 0 if it has read none. */
    long getPlanVersion();

    /** Returns the version of the plan that gives this consumer just what it was assigned; 0 if none does. */
    long getPlanVersionInForce();

    /** Returns the number of its partitions that the newest plan gives to it. */
    int getPartitionsByPlan();

    /** Returns the number of its other partitions. */
    int getPartitionsByFallback();

    /** Returns the number of rebalances that it has asked for since a new plan was published. */
    long getRebalancesAskedFor();

    /** Returns why the newest plan cannot be read or is not valid; empty if nothing is wrong. */
    String getTrouble();
}
