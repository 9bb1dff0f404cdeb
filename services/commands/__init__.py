"""The commands of `gateway` that look at a data folder or a database, a file a group."""
