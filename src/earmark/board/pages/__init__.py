"""The pages of the board: those that everybody reads, and those of authors and moderators."""
