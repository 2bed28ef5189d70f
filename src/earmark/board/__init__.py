"""The leaderboard: storage, rules for submissions, a JSON API and pages."""
