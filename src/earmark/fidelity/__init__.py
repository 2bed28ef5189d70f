"""Real sets against generated ones: fidelity and coverage by balls of neighbours, and their correction for hubness."""
