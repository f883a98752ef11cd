"""Resources and prompts that a project or a package publishes beside its tools."""
