"""The command line `crib`: reads what was typed, holds a Crib, prints what it says."""
