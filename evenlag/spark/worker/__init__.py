"""What an executor does with the rows of its groups. No Spark is imported here."""
