"""Files: durable writes, locks, and access that cannot leave its root."""
