"""The law that regular expressions on foreign text take linear time, and what measures it."""
