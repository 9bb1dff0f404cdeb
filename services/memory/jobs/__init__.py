"""Background jobs: summaries, facts and vectors made from committed turns."""
