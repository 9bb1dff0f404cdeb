"""The tables of the first release, by area; the step `0023` creates them."""
