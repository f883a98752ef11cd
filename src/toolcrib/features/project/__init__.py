"""What every project has: sandbox, network access, workspace, documents and secrets, made as the settings say."""
