"""Background jobs: summaries, facts and vectors made of committed turns."""
