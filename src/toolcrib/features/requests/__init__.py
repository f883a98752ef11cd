"""Requests for missing tools: documents, queues, makers, the Builder, the gate and built packages."""
