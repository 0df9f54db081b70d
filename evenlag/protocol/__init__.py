"""Bytes of Kafka's protocols: data of members, and records of the groups' coordinator. No client, no Spark."""
