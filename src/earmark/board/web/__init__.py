"""What the pages and the API share: requests, answers, errors, security, logs."""
