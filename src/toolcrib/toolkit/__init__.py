"""Building blocks of the commands and endpoints of features."""
