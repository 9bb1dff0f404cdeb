"""Values that stand for messages between services where these would be slower."""
