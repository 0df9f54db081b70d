package io.evenlag;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.common.TopicPartition;

/**
 * Which name of a plan stands for each member of a group: the one with its group.instance.id, else with its member id,
 * its client.id, or its rack and host. Members that are alike share the names that fit them: each takes the one of whose
 * partitions it already holds most.
 */
final class MemberNames {
    /** What Kafka adds to the client.id, or to the group.instance.id, to make a member id of the classic protocol. */
    private static final Pattern TAIL = Pattern.compile("-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$");

    /** The name of each member that the plan names. */
    final Map<String, String> nameOf = new TreeMap<>();

    /** Names of the plan that no member has. */
    private final Set<String> absent;
    private final Plan plan;
    private final Map<String, Identity> members;
    private final Map<String, ? extends Collection<TopicPartition>> held;

    /**
     * @param members the members by id
     * @param held the partitions that members hold, by member id
     */
    MemberNames(Plan plan, Map<String, Identity> members, Map<String, ? extends Collection<TopicPartition>> held) {
        this.plan = plan;
        this.members = members;
        this.held = held;
        this.absent = new TreeSet<>(plan.assignment.keySet());
        rank(name -> name, id -> members.get(id).instanceId);
        rank(name -> plan.identity(name).instanceId, id -> members.get(id).instanceId);
        rank(name -> name, id -> id);
        rank(name -> name, id -> members.get(id).clientId);
        rank(name -> plan.identity(name).clientId, id -> members.get(id).clientId);
        rank(MemberNames::withoutTail, id -> members.get(id).clientId);
        rank(name -> plan.identity(name).rackAndHost(), id -> members.get(id).rackAndHost());
        rank(name -> plan.identity(name).host, id -> members.get(id).hostAlone());
        rank(name -> plan.identity(name).hostAlone(), id -> members.get(id).host);
    }

    /** Returns a member id of the classic protocol without the random part. */
    static String withoutTail(String memberId) {
        return TAIL.matcher(memberId).replaceFirst("");
    }

    /** Returns the names that no member has, as a user knows them. */
    List<String> notFound() {
        List<String> shown = new ArrayList<>();
        absent.forEach(name -> shown.add(plan.shownName(name)));
        return shown;
    }

    /** Gives names to members without one by a key that both have, or null. */
    private void rank(Function<String, String> ofName, Function<String, String> ofMember) {
        Map<String, List<String>> alike = new TreeMap<>();
        for (String member : new TreeSet<>(members.keySet())) {
            String key = nameOf.containsKey(member) ? null : ofMember.apply(member);
            if (key != null) {
                alike.computeIfAbsent(key, each -> new ArrayList<>()).add(member);
            }
        }
        Map<String, List<String>> fitting = new HashMap<>();
        for (String name : absent) {
            String key = ofName.apply(name);
            if (key != null && alike.containsKey(key)) {
                fitting.computeIfAbsent(key, each -> new ArrayList<>()).add(name);
            }
        }
        fitting.forEach((key, names) -> share(alike.get(key), names));
    }

    private void share(List<String> alike, List<String> names) {
        Set<String> open = new HashSet<>(names);
        Map<List<String>, Double> shares = new HashMap<>();
        for (String member : alike) {
            for (TopicPartition partition : held.get(member)) {
                String name = plan.owners.get(partition);
                if (name != null && open.contains(name)) {
                    shares.merge(List.of(name, member), 1.0 / plan.partitionsOf(name).size(), Double::sum);
                }
            }
        }
        shares.entrySet().stream()
            .sorted(Map.Entry.<List<String>, Double>comparingByValue().reversed()
                .thenComparing(Map.Entry::getKey, Comparator.comparing(pair -> String.join("\n", pair))))
            .forEach(each -> name(each.getKey().get(1), each.getKey().get(0)));
        for (String name : names) {
            alike.stream().filter(member -> !nameOf.containsKey(member)).findFirst()
                .ifPresent(member -> name(member, name));
        }
    }

    private void name(String member, String name) {
        if (!nameOf.containsKey(member) && absent.remove(name)) {
            nameOf.put(member, name);
        }
    }
}
