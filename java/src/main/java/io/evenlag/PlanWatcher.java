package io.evenlag;

import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets a consumer with {@link PlanAssignor} ask for a rebalance when a new plan is published.
 *
 * <p>An assignor cannot ask for one itself: it does not know its consumer, and a consumer may be used by one thread
 * alone. So the consumer is wrapped, and its {@code poll} asks where there is a new plan.
 */
public final class PlanWatcher {
    private static final Logger LOG = LoggerFactory.getLogger(PlanAssignor.class);
    private static final Map<String, WeakReference<PlanWatch>> WATCHES = new ConcurrentHashMap<>();

    private PlanWatcher() {
    }

    static void register(String clientId, PlanWatch watch) {
        WATCHES.values().removeIf(each -> each.get() == null);
        WATCHES.put(clientId, new WeakReference<>(watch));
    }

    /**
     * Returns the same consumer, whose {@code poll} asks for a rebalance if a plan was published that the group does
     * not follow yet. A thread reads the plans until the consumer is closed.
     *
     * @param consumer a consumer made just now, with {@link PlanAssignor} among its assignors
     * @throws IllegalArgumentException the consumer does not use PlanAssignor
     */
    @SuppressWarnings("unchecked")
    public static <K, V> Consumer<K, V> watching(Consumer<K, V> consumer) {
        PlanWatch watch = consumer.metrics().keySet().stream().map(name -> name.tags().get("client-id"))
            .filter(Objects::nonNull).distinct().map(WATCHES::get).filter(Objects::nonNull).map(WeakReference::get)
            .filter(Objects::nonNull).findFirst()
            .orElseThrow(() -> new IllegalArgumentException(
                "the consumer does not use PlanAssignor; name it in partition.assignment.strategy"));
        watch.start();
        return (Consumer<K, V>) Proxy.newProxyInstance(PlanWatcher.class.getClassLoader(), new Class<?>[] {Consumer.class},
            (proxy, method, arguments) -> call(consumer, watch, method, arguments));
    }

    private static Object call(Consumer<?, ?> consumer, PlanWatch watch, Method method, Object[] arguments)
        throws Throwable {
        if (method.getName().equals("poll")) {
            ask(consumer, watch);
        }
        try {
            return method.invoke(consumer, arguments);
        } catch (InvocationTargetException exception) {
            throw exception.getCause();
        } finally {
            if (method.getName().equals("close")) {
                watch.stop();
            }
        }
    }

    private static void ask(Consumer<?, ?> consumer, PlanWatch watch) {
        long version = watch.due();
        if (version > 0) {
            LOG.info("asks for a rebalance: plan {} was published", version);
            consumer.enforceRebalance("evenlag: plan " + version + " was published");
        }
    }
}
