"""Evaluation over HTTP: one Litestar application, started by `karat serve`. It needs the extra `web`.

A request passes `guard` (key, size, log), then its handler, which gives the body unread to a worker process (`pool`,
`worker`). The worker reads it, evaluates, and writes the answer. The event loop itself computes nothing.
"""
