package io.evenlag;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Pattern;

/**
 * Which member of a group a plan means by a name: by group.instance.id, else by member id, else by client.id, else by
 * the client.id in a member id of an earlier run. A name that fits several members of the same rank names none of them.
 */
final class MemberNames {
    /** What Kafka adds to the client.id, or to the group.instance.id, to make a member id. */
    private static final Pattern TAIL = Pattern.compile("-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$");

    /** The name in the plan of each member that it knows. */
    final Map<String, String> nameOf = new TreeMap<>();
    /** Names that fit several members. */
    final Set<String> shared = new TreeSet<>();

    private MemberNames() {
    }

    /**
     * @param names names in the plan
     * @param instanceIds the group.instance.id, or null, of each member id
     */
    static MemberNames match(Collection<String> names, Map<String, String> instanceIds) {
        return match(names, instanceIds, MemberNames::withoutTail);
    }

    /** @param clientId gives the client.id of each member id */
    static MemberNames match(
        Collection<String> names, Map<String, String> instanceIds, Function<String, String> clientId
    ) {
        MemberNames matched = new MemberNames();
        Set<String> members = new TreeSet<>(instanceIds.keySet());
        matched.rank(names, name -> name, members, instanceIds::get);
        matched.rank(names, name -> name, members, member -> member);
        matched.rank(names, name -> name, members, clientId);
        matched.rank(names, MemberNames::withoutTail, members, clientId);
        matched.shared.removeAll(matched.nameOf.values());
        return matched;
    }

    /** Returns a member id without the random part. */
    static String withoutTail(String memberId) {
        return TAIL.matcher(memberId).replaceFirst("");
    }

    private void rank(
        Collection<String> names, Function<String, String> ofName, Set<String> members, Function<String, String> ofMember
    ) {
        Map<String, List<String>> namesBy = new HashMap<>();
        Set<String> taken = new HashSet<>(nameOf.values());
        names.stream().filter(name -> !taken.contains(name))
            .forEach(name -> namesBy.computeIfAbsent(ofName.apply(name), key -> new ArrayList<>()).add(name));
        Map<String, List<String>> membersBy = new TreeMap<>();
        for (String member : members) {
            String key = nameOf.containsKey(member) ? null : ofMember.apply(member);
            if (key != null && namesBy.containsKey(key)) {
                membersBy.computeIfAbsent(key, each -> new ArrayList<>()).add(member);
            }
        }
        membersBy.forEach((key, alike) -> {
            List<String> meant = namesBy.get(key);
            if (alike.size() == 1 && meant.size() == 1) {
                nameOf.put(alike.get(0), meant.get(0));
            } else {
                shared.addAll(meant);
            }
        });
    }
}
