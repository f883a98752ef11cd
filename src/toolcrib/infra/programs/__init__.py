"""Find programs, run them and scripts in the sandbox, and interpret their outcome."""
