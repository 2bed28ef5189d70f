from earmark.workers import Workers, thread_count  # noqa: F401
