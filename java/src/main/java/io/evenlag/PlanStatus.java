package io.evenlag;

import java.lang.management.ManagementFactory;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The figures of one consumer, written by its assignor and read by JMX. */
final class PlanStatus implements PlanStatusMXBean {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);

    volatile long planVersion;
    volatile long planVersionInForce;
    volatile int partitionsByPlan;
    volatile int partitionsByFallback;
    volatile long rebalancesAskedFor;
    volatile String trouble = "";

    /** Replaces the figures of an earlier consumer with this client.id. */
    void register(String group, String clientId) {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            ObjectName name = new ObjectName("io.evenlag:type=PlanAssignor,group=" + ObjectName.quote(group)
                + ",client-id=" + ObjectName.quote(clientId));
            if (server.isRegistered(name)) {
                server.unregisterMBean(name);
            }
            server.registerMBean(this, name);
        } catch (JMException | SecurityException exception) {
            LOG.warn("group {}, {}: no figures by JMX", group, clientId, exception);
        }
    }

    @Override
    public long getPlanVersion() {
        return planVersion;
    }

    @Override
    public long getPlanVersionInForce() {
        return planVersionInForce;
    }

    @Override
    public int getPartitionsByPlan() {
        return partitionsByPlan;
    }

    @Override
    public int getPartitionsByFallback() {
        return partitionsByFallback;
    }

    @Override
    public long getRebalancesAskedFor() {
        return rebalancesAskedFor;
    }

    @Override
    public String getTrouble() {
        return trouble;
    }
}
