"""Where runs that wait are kept."""
