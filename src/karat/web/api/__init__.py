"""The native API below `/v1`: its operations, described once in `operations`, and the tasks that a worker does."""
