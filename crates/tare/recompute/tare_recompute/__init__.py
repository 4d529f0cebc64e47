"""A second path from the results of a run to its findings, apart from tare's own. See docs/reference/verify.md."""
