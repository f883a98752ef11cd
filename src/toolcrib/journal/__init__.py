"""What happened: one line for each call and for each event a tool wants on record."""
