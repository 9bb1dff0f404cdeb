"""The tables of the first release, by area; the step `0021` creates them."""
