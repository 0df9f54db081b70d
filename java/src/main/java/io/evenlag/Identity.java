package io.evenlag;

/** What brokers know of a member besides its id; null where unknown. All of it outlasts a restart. */
final class Identity {
    static final Identity UNKNOWN = new Identity(null, null, null, null);

    final String instanceId;
    final String clientId;
    final String rack;
    final String host;

    Identity(String instanceId, String clientId, String rack, String host) {
        this.instanceId = instanceId;
        this.clientId = clientId;
        this.rack = rack;
        this.host = host;
    }

    /** Returns the rack and host in one text; null unless both are known. */
    String rackAndHost() {
        return rack == null || host == null ? null : rack + "\n" + host;
    }

    /** Returns the host of a member whose rack is unknown; else null. */
    String hostAlone() {
        return rack == null ? host : null;
    }
}
