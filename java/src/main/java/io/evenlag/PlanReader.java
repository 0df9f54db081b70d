package io.evenlag;

import java.time.Duration;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The newest valid plan of a group. A plan that is broken, older or gone changes nothing: the last one stays.
 *
 * <p>Safe for use by several threads.
 */
final class PlanReader {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);
    private static final long REST = Duration.ofSeconds(10).toNanos();

    private final Plans plans;
    private final String group;
    private final PlanStatus status;
    private volatile Plan newest;
    private boolean failed;
    private long failedAt;

    PlanReader(Plans plans, String group, PlanStatus status) {
        this.plans = plans;
        this.group = group;
        this.status = status;
    }

    /** Returns the newest valid plan read so far, or null. */
    Plan newest() {
        return newest;
    }

    boolean isQuick() {
        return plans.isQuick();
    }

    /** Reads the place, unless that has failed a moment ago, for a caller that cannot wait for it in vain each time. */
    void readUnlessFailing(Duration limit) {
        synchronized (this) {
            if (!plans.isQuick() && failed && System.nanoTime() - failedAt < REST) {
                return;
            }
        }
        read(limit);
    }

    /** Reads the place. A failure is logged once. */
    synchronized void read(Duration limit) {
        Plan before = newest;
        try {
            List<Plans.News> news = plans.news(limit);
            boolean wasUnread = failed;
            failed = false;
            String trouble = wasUnread || newest == null ? absence() : status.trouble;
            for (Plans.News each : news) {
                trouble = take(each);
            }
            report(trouble);
        } catch (Plans.UnreadException exception) {
            failed = true;
            failedAt = System.nanoTime();
            report(exception.getMessage());
        }
        if (newest != before) {
            LOG.info("group {}: read plan {} from {}", group, newest.version, plans);
        }
    }

    /** Ends connections to the place. */
    synchronized void close() {
        plans.close();
    }

    private String absence() {
        return newest == null ? plans + ": no plan of group '" + group + "'" : "";
    }

    /** Takes a plan if it is newer than the one before; returns what is wrong with it, or nothing. */
    private String take(Plans.News news) {
        Plan plan = news.plan;
        if (plan == null) {
            return news.trouble;
        }
        if (newest != null && plan.version < newest.version) {
            return plans + ": version " + plan.version + " is older; to go back to it, publish it again";
        }
        if (newest != null && plan.version == newest.version) {
            return plan.equals(newest) ? ""
                : plans + ": another plan of the same version " + plan.version + "; publish it again";
        }
        newest = plan;
        status.planVersion = plan.version;
        return "";
    }

    private void report(String trouble) {
        if (trouble.equals(status.trouble)) {
            return;
        }
        status.trouble = trouble;
        if (trouble.isEmpty()) {
            LOG.info("group {}: nothing is wrong with the plans any more", group);
        } else if (newest == null) {
            LOG.warn("group {}: {}; until there is a plan, the fallback assigns", group, trouble);
        } else {
            LOG.warn("group {}: {}; plan {} stays", group, trouble, newest.version);
        }
    }
}
