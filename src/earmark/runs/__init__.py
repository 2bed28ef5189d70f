"""What every kind of run shares."""
