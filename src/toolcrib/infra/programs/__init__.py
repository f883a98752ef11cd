"""Find and run programs and scripts in the sandbox, and read what came out."""
