"""HTTP tools: request templates, extraction, retries."""
