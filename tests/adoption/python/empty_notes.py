# Just notes to myself, no code yet.
